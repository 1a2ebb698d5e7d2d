"""The programs, by what they are about."""

from __future__ import annotations

from tests.equivalence.program import Program, programs_of
from tests.equivalence.programs import (
    optimizers,
)

MODULES = (
    optimizers,
)


def all_programs() -> tuple[Program, ...]:
    """Gives every program, in the table's order."""
    return tuple(p for module in MODULES for p in programs_of(module))
