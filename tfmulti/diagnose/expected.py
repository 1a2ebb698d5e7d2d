"""What a GPU has by design, known by the name that the driver gives it.

    lanes     PCIe lanes of cards for data centres and workstations
    nvlinks   NVLinks of modules that sit on a board with all links wired

A card with a bridge may leave links unused by design (H100 PCIe has 12 of
18), so that only its peers can tell how many there should be.

Sources: NVIDIA's whitepapers of V100, A100, H100 and Blackwell; datasheets.
"""

from __future__ import annotations

import re

_SIXTEEN_LANES = re.compile(
    r"\b(P100|V100|T4|A10G?|A30|A40|A100|A800|L4|L40S?|H100|H200|H800|B200"
    r"|RTX A[56]000|RTX 6000)\b"
)

_NVLINKS = (
    (re.compile(r"P100-SXM"), 4),
    (re.compile(r"V100-SXM"), 6),
    (re.compile(r"A100-SXM"), 12),
    (re.compile(r"H100 80GB HBM3"), 18),
    (re.compile(r"H200$"), 18),
    (re.compile(r"B200"), 18),
)


def lanes(name: str) -> int | None:
    """Gives a GPU's PCIe lanes; None where they are not known."""
    return 16 if _SIXTEEN_LANES.search(name) else None


def nvlinks(name: str) -> int | None:
    """Gives a module's NVLinks; None for cards and what is not known."""
    for pattern, count in _NVLINKS:
        if pattern.search(name):
            return count
    return None
