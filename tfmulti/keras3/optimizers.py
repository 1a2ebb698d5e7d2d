"""Reduce, then check for finite, then clip, then update.

Stock Keras clips and checks each replica's own gradient and sums afterwards
(`backend/tensorflow/optimizer.py`, `optimizers/base_optimizer.py`), so that
clipping clips something else and one replica alone decides whether a step of
`mixed_float16` is skipped. Here `apply` sums first and lets Keras's own code
do the rest on the sums. As every replica then computes the same update, each
updates its own copies, without merging: such an update may stand inside the
`cond` of gradient accumulation, of an EMA overwrite and of loss scaling.

Gradients that `tape.gradient` made global already (inside the engine's steps)
are not summed again; those of a loop of a person's own are summed here, as
tf.distribute asks of an optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfmulti.keras3 import gradients as gradients_lib
from tfmulti.keras3 import reduction
from tfmulti.keras3 import step as step_lib


def reduce_then_apply(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `BaseOptimizer.apply`: sums over replicas, then Keras's code."""

    def apply(
        self: Any, grads: Sequence[Any], trainable_variables: Any = None
    ) -> None:
        if (
            step_lib.local_updates_only()
            or step_lib.replica_context() is None
            or not len(grads)
        ):
            return original(self, grads, trainable_variables)
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
        variables = trainable_variables or self._trainable_variables
        grads = list(grads)
        parts = reduces_at_update(self)
        if not parts:
            grads = _sum_what_is_local(grads, variables)
        with step_lib.local_updates(parts=parts):
            return original(self, grads, trainable_variables)

    return apply


def common_apply(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `LossScaleOptimizer._tf_apply`: no merge call is needed."""

    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        if step_lib.local_updates_only():
            return self._common_apply(grads, trainable_variables)
        return original(self, grads, trainable_variables)

    return apply


def reduce_then_clip(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `BaseOptimizer._clip_gradients` for accumulated gradients.

    Keras calls it with the mean over the microbatches, inside the `cond` of
    the step that updates: the one place where accumulated gradients must
    become global.
    """

    def clip(self: Any, grads: Sequence[Any]) -> Any:
        if step_lib.gradients_are_parts():
            grads = reduction.sum_over_replicas(list(grads))
            if step_lib.current() is not None:
                grads = _mean_of_sums(grads)
        return original(self, grads)

    return clip


def _mean_of_sums(sums: Sequence[Any]) -> list[Any]:
    """Divides by the replicas: what is deferred is global as their mean."""
    context = step_lib.replica_context()
    if context is None:
        return list(sums)
    part = 1.0 / context.num_replicas_in_sync
    return [gradients_lib.scale(total, part) for total in sums]


def already_reduced(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `_all_reduce_sum_gradients`: the identity once we have summed."""

    def all_reduce(self: Any, grads_and_vars: Any) -> Any:
        if step_lib.local_updates_only():
            return grads_and_vars
        return original(self, grads_and_vars)

    return all_reduce


def reduces_at_update(optimizer: Any) -> bool:
    """Whether gradients are summed over replicas only when they are used."""
    step = step_lib.current()
    accumulates = bool(getattr(optimizer, "gradient_accumulation_steps", None))
    return accumulates and (step is None or step.defer_gradients)


def _sum_what_is_local(
    grads: Sequence[Any], variables: Sequence[Any]
) -> list[Any]:
    step = step_lib.current()
    if step is None:
        return reduction.sum_over_replicas(grads)
    local = [
        i
        for i, variable in enumerate(variables)
        if gradients_lib.variable_key(variable) not in step.reduced
    ]
    sums = reduction.sum_over_replicas(
        [gradients_lib.scale(grads[i], step.share) for i in local]
    )
    result = list(grads)
    for index, value in zip(local, sums, strict=True):
        result[index] = value
    return result
