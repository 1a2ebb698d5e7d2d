"""What a program is: a small function that trains and gives what came out.

    program.run(place) -> {"weight/0": array, "history/loss": array, ...}

The same function runs on one device (`place.strategy` is None) and under a
strategy; it asks its place for the scope alone, as code that people write
does.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a program runs.

    Attributes:
        strategy: The strategy, or None for one device without any.
        folder: An empty folder, the same one for all workers of a job.
    """

    strategy: Any
    folder: Path

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Gives the strategy's scope; on one device, nothing."""
        if self.strategy is None:
            return contextlib.nullcontext()
        return self.strategy.scope()

    @property
    def replicas(self) -> int:
        """Replicas in the whole job."""
        if self.strategy is None:
            return 1
        return self.strategy.num_replicas_in_sync


@dataclass(frozen=True, kw_only=True)
class Program:
    """One row of the table.

    Attributes:
        name: "group/what it is about".
        run: Trains at a place and gives the arrays to compare.
        reports: Rows of the list of public reports that it covers.
        tolerance: Largest relative difference that counts as equal.
        why: The reason for a tolerance that is not the usual one.
    """

    name: str
    run: Callable[[Place], Arrays]
    reports: tuple[str, ...] = ()
    tolerance: float = 1e-5
    why: str = ""

    def __post_init__(self) -> None:
        if self.tolerance != 1e-5 and not self.why:
            raise ValueError(f"{self.name}: say why the tolerance is wider")


def program(
    name: str,
    *reports: str,
    tolerance: float = 1e-5,
    why: str = "",
) -> Callable[[Callable[[Place], Mapping[str, Any]]], Program]:
    """Makes a function one program, as a decorator."""

    def make(run: Callable[[Place], Mapping[str, Any]]) -> Program:
        return Program(
            name=name,
            run=lambda place: _arrays(run(place)),
            reports=reports,
            tolerance=tolerance,
            why=why,
        )

    return make


def programs_of(module: types.ModuleType) -> Iterator[Program]:
    """Yields a module's programs and those in its tuples, in order."""
    for value in vars(module).values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Program):
                yield item


def _arrays(values: Mapping[str, Any]) -> Arrays:
    return {name: np.asarray(value) for name, value in values.items()}
