"""What a replica knows while it runs one step.

The engine runs a model's `train_step` (or `test_step`) once per replica, each
in a thread of its own. Code deep inside Keras (a loss, an optimizer, a seed
generator) must know in which step it runs:

    engine ─strategy.run─► replica 0:  with running(Step(...)): train_step
                           replica 1:  with running(Step(...)): train_step

Inside a step the convention of this package holds: a replica computes as
one device would on its part of the batch (means are means over that part),
and whatever leaves the replica is weighted by `share`, its part of the global
batch. The weighted sum over replicas is then the value of the whole batch,
for even and uneven parts, for Keras's losses and for a person's own.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf


@dataclass(kw_only=True)
class Step:
    """One replica's step, from the moment its function is entered.

    Attributes:
        share: This replica's part of the global batch, rows / total; a Python
            float where it is known when the graph is built.
        rows: Rows of this replica's part that count, or None if all do.
        defer_gradients: The optimizer sums over microbatches itself and
            reduces once, at its update.
        reduced: Variables whose gradients are global already.
        results: id(tensor) -> what a metric's `result` returned it.
    """

    share: float | tf.Tensor
    rows: tf.Tensor | None = None
    defer_gradients: bool = False
    in_gradient: bool = False
    compiling: bool = False
    reduced: set[int] = field(default_factory=set)
    results: dict[int, Any] = field(default_factory=dict)

    @property
    def even(self) -> bool:
        """Whether all replicas are known to have equal parts."""
        return isinstance(self.share, float)


_STEP: contextvars.ContextVar[Step | None] = contextvars.ContextVar(
    "tfmulti_step", default=None
)
_UPDATE: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "tfmulti_update", default=None
)


def current() -> Step | None:
    """Gives the step that this thread runs, or None outside the engine."""
    return _STEP.get()


@contextlib.contextmanager
def running(step: Step | None) -> Iterator[Step | None]:
    """Makes `step` the current one for the code inside."""
    token = _STEP.set(step)
    try:
        yield step
    finally:
        _STEP.reset(token)


class NotCompilable(Exception):
    """Code that needs the other replicas stands inside a compiled part."""


@contextlib.contextmanager
def compiling(step: Step) -> Iterator[None]:
    """Marks the code inside as compiled by XLA: no collectives there."""
    step.compiling = True
    try:
        yield
    finally:
        step.compiling = False


def local_updates_only() -> bool:
    """Whether updates touch only this replica's copy of a variable."""
    return _UPDATE.get() is not None


def gradients_are_parts() -> bool:
    """Whether a local update still holds this replica's gradients alone."""
    return _UPDATE.get() == "parts"


@contextlib.contextmanager
def local_updates(*, parts: bool) -> Iterator[None]:
    """Lets the code inside update this replica's copies, without merging.

    Values that are equal on all replicas (a reduced gradient and all that is
    computed from it) leave equal copies behind. Without `merge_call` such an
    update may stand inside `tf.cond` and `tf.while_loop`.

    Args:
        parts: The gradients are not reduced yet: the optimizer sums them over
            microbatches first.
    """
    token = _UPDATE.set("parts" if parts else "sums")
    try:
        yield
    finally:
        _UPDATE.reset(token)


def replica_context() -> tf.distribute.ReplicaContext | None:
    """Gives the replica context if there is more than one replica."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context
