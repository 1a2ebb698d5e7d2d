"""The programs, by what they are about."""

from __future__ import annotations

from tests.equivalence.program import Program, programs_of
from tests.equivalence.programs import (
    callbacks,
    combinations,
    data,
    loops,
    losses,
    metrics,
    models,
    on_batch,
    optimizers,
    steps,
)

MODULES = (
    optimizers,
    losses,
    metrics,
    data,
    models,
    steps,
    on_batch,
    loops,
    callbacks,
    combinations,
)


def all_programs() -> tuple[Program, ...]:
    """Gives every program, in the table's order."""
    return tuple(p for module in MODULES for p in programs_of(module))
