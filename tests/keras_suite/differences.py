"""Known differences."""
from __future__ import annotations

def known_in(mode):
    return {}
