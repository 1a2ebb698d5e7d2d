"""Where a run stands in its data, and whether another run may go on there.

    run, 4 workers --save--> {"global_step": 1203, ...} --> run, 2 workers

The order is a function of the global step, so the step says everything; the
rest of a position tells whether it is a step of the same order over the same
examples. The number of workers is no part of it: the examples of a step are
the same for every division. No TensorFlow here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfmulti.data.order import Order
from tfmulti.errors import UsageError

# Raised when a step of the same order means other examples than before.
VERSION = 1

_KEYS = frozenset({"version", "epoch", "global_step", "source", "order"})


@dataclass(frozen=True, kw_only=True)
class Position:
    """A place in the order of a source's examples.

    Attributes:
        global_step: The step to read next; as many were read before.
        source: Fingerprint of the source.
        order: The order that the step counts in.
    """

    global_step: int
    source: str
    order: Order

    def __post_init__(self) -> None:
        if self.global_step < 0:
            raise UsageError(
                received=f"the global step {self.global_step}",
                allowed="a whole number from 0",
                remedy="Name a step that was reached.",
            )

    @property
    def epoch(self) -> int:
        """The epoch in which the next step lies."""
        return self.global_step // self.order.steps_per_epoch

    def to_json(self) -> str:
        """Gives the position as one line of JSON."""
        return json.dumps(
            {
                "version": VERSION,
                "epoch": self.epoch,
                "global_step": self.global_step,
                "source": self.source,
                "order": dataclasses.asdict(self.order),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Position:
        """Reads what `to_json` wrote.

        Raises:
            UsageError: It is no position, or one of another version.
        """
        fields = _fields(text)
        try:
            position = cls(
                global_step=_whole(fields["global_step"]),
                source=str(fields["source"]),
                order=Order(**fields["order"]),
            )
        except (TypeError, ValueError) as error:
            raise _no_position(text) from error
        if position.epoch != fields["epoch"]:
            raise _no_position(text)
        return position

    def step_in(self, source: str, order: Order) -> int:
        """Gives the step to go on at, if the data are the same as before.

        Args:
            source: Fingerprint of the source to be read.
            order: The order to be read in.

        Raises:
            UsageError: It is another source or another order.
        """
        if source != self.source:
            raise UsageError(
                received=f"the data {source} for a position in the data "
                f"{self.source}",
                allowed="the data set that the run began with, unchanged",
                remedy="Give the same --data, or start a new run.",
            )
        was, now = dataclasses.asdict(self.order), dataclasses.asdict(order)
        differing = [name for name in was if was[name] != now[name]]
        if differing:
            raise UsageError(
                received=_listed(now, differing),
                allowed=f"{_listed(was, differing)}, as the run began",
                remedy="Give the same values, or start a new run.",
            )
        return self.global_step


def _fields(text: str) -> Mapping[str, Any]:
    """Reads the JSON and compares its version and its keys."""
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise _no_position(text) from error
    if not isinstance(fields, dict) or "version" not in fields:
        raise _no_position(text)
    if fields["version"] != VERSION:
        raise UsageError(
            received=f"a data position of version {fields['version']}",
            allowed=f"version {VERSION}",
            remedy="Go on with the tfmulti that saved it, or start a new run.",
        )
    if fields.keys() != _KEYS:
        raise _no_position(text)
    return fields


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _no_position(text: str) -> UsageError:
    return UsageError(
        received=f"{text[:80]!r} as a data position",
        allowed="the JSON that a run saved",
        remedy="Choose another checkpoint: this one is damaged.",
    )


def _listed(values: Mapping[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name}={values[name]}" for name in names)
