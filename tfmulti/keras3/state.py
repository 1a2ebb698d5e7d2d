"""State that layers update themselves: equal everywhere when it is read.

Moving statistics and whatever else a layer assigns in `call` is kept per
replica ("aggregation none") and drifts apart during steps, which costs
nothing. A moving average is linear, so that the mean of the replicas'
averages is the average of their means: taking the mean over replicas once,
before anybody reads, is exact. Integer state (counters, seeds) is the same on
all replicas and stays untouched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfmulti.keras3 import reduction
from tfmulti.keras3 import step as step_lib


def drifting(model: keras.Model) -> list[keras.Variable]:
    """Lists the variables that replicas may have updated each for itself."""
    candidates = list(model.non_trainable_variables)
    for optimizer in optimizers_of(model):
        if getattr(optimizer, "gradient_accumulation_steps", None):
            candidates += [
                v
                for v in getattr(optimizer, "_accumulated_gradients", ())
                if v is not None
            ]
    return [v for v in candidates if drifts(v)]


def drifts(variable: Any) -> bool:
    """Whether replicas may have different values of a variable."""
    return (
        isinstance(variable.value, tf.distribute.DistributedValues)
        and tf.as_dtype(variable.value.dtype).is_floating
        and getattr(variable, "aggregation", "none") in ("none", "mean")
        and getattr(variable, "synchronization", "auto") != "on_read"
    )


def optimizers_of(model: keras.Model) -> list[Any]:
    """Lists the optimizers that a model holds, compiled or as attributes."""
    found = {
        id(value): value
        for value in [getattr(model, "optimizer", None), *vars(model).values()]
        if isinstance(value, keras.optimizers.Optimizer)
    }
    inner = [
        o.inner_optimizer
        for o in found.values()
        if hasattr(o, "inner_optimizer")
    ]
    return [*found.values(), *inner]


def take_mean(variables: Sequence[keras.Variable]) -> None:
    """Replaces each variable by its mean over replicas, in one collective.

    Must be called in a replica context.
    """
    context = step_lib.replica_context()
    if context is None or not variables:
        return
    values = [
        tf.convert_to_tensor(v.value) / context.num_replicas_in_sync
        for v in variables
    ]
    means = reduction.packed_sum_over_replicas(values)
    with step_lib.local_updates(parts=False):
        for variable, mean in zip(variables, means, strict=True):
            variable.assign(mean)


def take_mean_if(
    condition: tf.Tensor, variables: Sequence[keras.Variable]
) -> None:
    """Like `take_mean`, where `condition` (equal on all replicas) holds."""
    if not variables:
        return

    def take() -> None:
        with step_lib.local_updates(parts=False):
            take_mean(variables)

    tf.cond(condition, take, lambda: None)


def weigh_changes_if(
    condition: tf.Tensor,
    variables: Sequence[keras.Variable],
    before: Sequence[tf.Tensor],
    share: float | tf.Tensor,
) -> None:
    """Replaces each replica's change of a variable by the weighted sum.

    Args:
        condition: Whether to do it; equal on all replicas.
        variables: The variables, with the changes of this replica's step.
        before: Their values before the step, equal on all replicas.
        share: The weight of this replica.
    """
    if not variables:
        return

    def weigh() -> None:
        changes = [
            (tf.convert_to_tensor(v.value) - old) * tf.cast(share, old.dtype)
            for v, old in zip(variables, before, strict=False)
        ]
        with step_lib.local_updates(parts=False):
            totals = reduction.packed_sum_over_replicas(changes)
            for variable, old, change in zip(
                variables, before, totals, strict=False
            ):
                variable.assign(old + change)

    tf.cond(condition, weigh, lambda: None)


def put_back_if(
    condition: tf.Tensor,
    variables: Sequence[keras.Variable],
    before: Sequence[tf.Tensor],
) -> None:
    """Gives this replica's copies the values `before`, if `condition`."""
    if not variables:
        return

    def put_back() -> None:
        with step_lib.local_updates(parts=False):
            for variable, old in zip(variables, before, strict=True):
                variable.assign(old)

    tf.cond(condition, put_back, lambda: None)
