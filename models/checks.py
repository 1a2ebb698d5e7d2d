"""Checks that the configurations of all factories share.

Each raises a `ValueError` that names the value, what is allowed, and what to
do: a person meets it when an experiment or a flag asks for a model that
cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def refuse(name: str, value: Any, allowed: str, remedy: str) -> None:
    """Raises the `ValueError` for a value that cannot be used."""
    raise ValueError(f"{name}={value!r}; allowed: {allowed}. {remedy}")


def at_least(smallest: int, **values: Any) -> None:
    """Refuses every value that is not a whole number from `smallest`."""
    for name, value in values.items():
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < smallest:
            refuse(
                name,
                value,
                f"a whole number from {smallest}",
                f"Give {name} such a number.",
            )


def one_of(allowed: Iterable[Any], **values: Any) -> None:
    """Refuses every value that is not among `allowed`."""
    choices = tuple(allowed)
    for name, value in values.items():
        if value not in choices:
            refuse(
                name,
                value,
                ", ".join(map(str, choices)),
                f"Choose one of these for {name}.",
            )


def rate(**values: Any) -> None:
    """Refuses every value outside [0, 1): dropout rates and the like."""
    for name, value in values.items():
        if not isinstance(value, (int, float)) or not 0 <= value < 1:
            refuse(
                name,
                value,
                "a number from 0 to below 1",
                f"Set {name} to 0 to switch it off.",
            )


def divides(divisor_name: str, divisor: int, **values: int) -> None:
    """Refuses every value that `divisor` does not divide."""
    for name, value in values.items():
        if value % divisor:
            refuse(
                name,
                value,
                f"a multiple of {divisor_name}={divisor}",
                f"Change {name} or {divisor_name}.",
            )


def image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """Gives `shape` as a tuple (height, width, channels), checked."""
    if len(shape) != 3 or any(not isinstance(n, int) or n < 1 for n in shape):
        refuse(
            "image_shape",
            tuple(shape),
            "three whole numbers from 1: height, width, channels",
            "Give, for example, (8, 8, 1).",
        )
    height, width, channels = shape
    return height, width, channels
