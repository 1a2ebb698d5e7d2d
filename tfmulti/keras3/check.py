"""Are all copies of a model's variables equal? Names the first that is not.

    check_replicas(model)   ──one all-gather of digests──►  Difference | None

Every replica of every worker digests each variable (its extremes and sums);
the digests are compared on all workers alike, so that the answer, and the
error, is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfmulti.errors import TfmultiError
from tfmulti.keras3 import state as state_lib


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One variable whose copies are not equal.

    Attributes:
        variable: The variable's path.
        replicas: The two replicas (numbers in the whole job) that differ most.
        difference: Largest absolute difference of a sum or an extreme of the
            two copies; for equal shapes at least as telling as an element's.
    """

    variable: str
    replicas: tuple[int, int]
    difference: float

    def __str__(self) -> str:
        return (
            f"variable {self.variable!r} differs between replicas "
            f"{self.replicas[0]} and {self.replicas[1]} "
            f"by {self.difference:.3g}"
        )


class ReplicasDiffer(TfmultiError):
    """Copies of a variable are not equal.

    Args:
        difference: The first variable that differs.
    """

    def __init__(self, difference: Difference):
        self.difference = difference
        super().__init__(
            f"{difference}; allowed: equal copies. Look for an assignment on "
            "one replica or worker alone (a callback, weights loaded on one "
            "worker, a loop outside strategy.run)."
        )


def check_replicas(
    model: keras.Model, *, tolerance: float = 0.0
) -> Difference | None:
    """Compares the copies of every variable over replicas and workers.

    Every worker of the job must call it at the same point.

    Args:
        model: A built model.
        tolerance: Largest relative difference that counts as equal.

    Returns:
        The first variable whose copies differ, or None.
    """
    strategy = model.distribute_strategy
    variables = _checked(model)
    if strategy.num_replicas_in_sync == 1 or not variables:
        return None
    digests = _digests(strategy, variables)
    for variable, digest in zip(variables, digests, strict=True):
        found = _compare(variable.path, digest, tolerance)
        if found is not None:
            return found
    return None


class CheckReplicas(keras.callbacks.Callback):
    """Checks at each epoch's end, and stops the run if copies differ.

    Args:
        every_epochs: Epochs between two checks.
        tolerance: See `check_replicas`.

    Raises:
        ReplicasDiffer: On all workers alike, naming the variable.
    """

    def __init__(self, every_epochs: int = 1, tolerance: float = 0.0):
        super().__init__()
        self.every_epochs = every_epochs
        self.tolerance = tolerance

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        del logs
        if (epoch + 1) % self.every_epochs == 0:
            found = check_replicas(self.model, tolerance=self.tolerance)
            if found is not None:
                raise ReplicasDiffer(found)


def _checked(model: keras.Model) -> list[keras.Variable]:
    """Lists weights, state and optimizer variables, without metrics."""
    optimizers = [
        v for o in state_lib.optimizers_of(model) for v in o.variables
    ]
    unique = {id(v): v for v in [*model.variables, *optimizers]}
    return [
        v
        for v in unique.values()
        if getattr(v, "synchronization", "auto") != "on_read"
        and tf.as_dtype(v.dtype) != tf.string
    ]


def _digests(
    strategy: tf.distribute.Strategy, variables: Sequence[keras.Variable]
) -> np.ndarray:
    """Gives an array [variable, replica, number] of every copy's digest."""

    def replica() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        mine = tf.stack([_digest(v) for v in variables])
        return context.all_gather(mine[None], axis=0)

    gathered = tf.function(
        lambda: strategy.experimental_local_results(strategy.run(replica))[0],
        autograph=False,
    )()
    return np.moveaxis(gathered.numpy(), 0, 1)


def _digest(variable: keras.Variable) -> tf.Tensor:
    """Gives sum, weighted sum, least and largest element as float64."""
    value = tf.convert_to_tensor(variable.value)
    flat = tf.cast(tf.reshape(value, [-1]), tf.float64)
    size = tf.size(flat)
    place = tf.cast(tf.range(size) + 1, tf.float64)
    weighted = tf.reduce_sum(flat * place) / tf.cast(size, tf.float64)
    return tf.stack(
        [
            tf.reduce_sum(flat),
            weighted,
            tf.reduce_min(flat),
            tf.reduce_max(flat),
        ]
    )


def _compare(
    name: str, digest: np.ndarray, tolerance: float
) -> Difference | None:
    apart = np.nan_to_num(digest, nan=np.inf) - np.nan_to_num(
        digest[:1], nan=np.inf
    )
    apart = np.abs(np.nan_to_num(apart, nan=0.0, posinf=np.inf, neginf=np.inf))
    worst = apart.max(axis=1)
    scale = max(float(np.abs(digest[np.isfinite(digest)]).max(initial=0)), 1.0)
    if worst.max() <= tolerance * scale:
        return None
    return Difference(
        variable=name,
        replicas=(0, int(worst.argmax())),
        difference=float(worst.max()),
    )
