"""Version numbers that can be compared."""

from __future__ import annotations

import re


def numbers(version: str) -> tuple[int, ...]:
    """Gives a version's numbers: "12.5.1" -> (12, 5, 1)."""
    return tuple(map(int, re.findall(r"\d+", version))) or (0,)
