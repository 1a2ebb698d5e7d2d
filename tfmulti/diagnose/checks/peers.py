"""Whether GPUs may read each other's memory (peer-to-peer).

Where they may not, every all-reduce goes through the host's memory. GeForce
cards are made so ("GNS"); elsewhere the cause can be mended.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine

# The legend of nvidia-smi topo -p2p, and the severity.
WORDS = {
    "CNS": ("chipset not supported", "warning"),
    "GNS": ("GPU not supported", "note"),
    "TNS": ("topology not supported", "warning"),
    "NS": ("not supported", "warning"),
    "DR": ("disabled by a driver setting", "warning"),
}


def check(machine: Machine) -> Iterator[Finding]:
    """Groups the pairs that have no access by reason."""
    if machine.peers is None:
        return
    pairs = machine.peers.gpu_pairs
    for word, (meaning, severity) in WORDS.items():
        refused = [f"{a}-{b}" for a, b, said in pairs if said == word]
        if refused:
            shown = ", ".join(refused[:4])
            more = f" and {len(refused) - 4} more" if refused[4:] else ""
            yield Finding(
                code="peer_access",
                severity=severity,
                subject=shown + more,
                evidence=f"no peer-to-peer access: {meaning} ({word})",
                remedy="Expect gradients to go through host memory"
                if severity == "note"
                else "Put GPUs that train together under one PCIe root; "
                "look at IOMMU, ACS and the driver's options.",
            )
