"""Losses whose weighted sum over replicas is the loss of the whole batch.

Inside a step of the engine a loss is a mean over the replica's own part, and
the step weights it by `share = rows / total rows` (see `step.py`). For the
plain mean that is all there is to do, and it costs nothing. The other
reductions become exact with one factor each, where L_r is what replica r
returns and sum_r share_r * L_r must be the value of the whole batch:

    sum, none                 L_r = local / share_r
    masked mean               L_r = local sum / (share_r * all valid entries)
    mean_with_sample_weight   L_r = local sum / (share_r * all weights)

The last two need the global denominator: one scalar all-reduce.

Stock Keras instead multiplies each mean by 1 / replicas in
`losses/loss.py: scale_loss_for_distribution`, which is inexact for uneven or
masked parts and forgets losses that return a scalar
(https://github.com/keras-team/keras/issues/19891 and its neighbours). In a
loop of a person's own around `strategy.run` that convention stays, since the
optimizer sums there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from keras import ops

from tfmulti.keras3 import reduction
from tfmulti.keras3 import step as step_lib

_MEANS = ("mean", "sum_over_batch_size")


def reduce_values(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `losses.loss.reduce_values`."""

    def reduce(
        values: Any,
        sample_weight: Any = None,
        reduction: str | None = "sum_over_batch_size",
    ) -> Any:
        step = step_lib.current()
        if step is None or step_lib.replica_context() is None:
            return original(values, sample_weight, reduction)
        if tuple(values.shape) == ():
            return values
        if reduction in (None, "none", "sum"):
            value = original(values, sample_weight, reduction)
            return ops.divide_no_nan(value, ops.cast(step.share, value.dtype))
        if reduction == "mean_with_sample_weight" and sample_weight is not None:
            total = _over_all_replicas(step, ops.sum(sample_weight))
            return ops.divide_no_nan(
                ops.sum(values), _of_this_replica(step, total, values.dtype)
            )
        return original(values, sample_weight, reduction)

    return reduce


def apply_mask(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `losses.loss.apply_mask`, which divides by the valid entries."""

    def apply(
        sample_weight: Any, mask: Any, dtype: Any, reduction: str | None
    ) -> Any:
        weight = original(sample_weight, mask, dtype, reduction)
        step = step_lib.current()
        if (
            mask is None
            or reduction not in _MEANS
            or step is None
            or step_lib.replica_context() is None
        ):
            return weight
        valid = ops.sum(ops.cast(mask, dtype))
        total = _over_all_replicas(step, valid)
        factor = ops.divide_no_nan(
            valid, _of_this_replica(step, total, valid.dtype)
        )
        return weight * ops.cast(factor, weight.dtype)

    return apply


def scale_loss(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `scale_loss_for_distribution`: the step weights, not the loss.

    Nor is a loss scaled that is called outside of all replicas: nobody sums
    it over them.
    """

    def scale(value: Any) -> Any:
        if step_lib.current() is not None or _outside_replicas():
            return value
        return original(value)

    return scale


def unscale_loss(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `unscale_loss_for_distribution`, called for what is reported."""

    def unscale(value: Any) -> Any:
        step = step_lib.current()
        if _outside_replicas():
            return value
        if step is None or step_lib.replica_context() is None:
            return original(value)
        if tuple(value.shape) == ():
            return value
        # Only an unreduced loss is not a scalar; it was divided by the share.
        return ops.mean(value) * ops.cast(step.share, value.dtype)

    return unscale


def _outside_replicas() -> bool:
    """Whether this code runs once for all replicas, not in each of them."""
    return bool(tf.distribute.in_cross_replica_context())


def _over_all_replicas(step: step_lib.Step, value: Any) -> Any:
    value = tf.stop_gradient(value)
    if step.rows is not None:
        value = tf.where(step.rows > 0, value, tf.zeros_like(value))
    return reduction.sum_over_replicas([value])[0]


def _of_this_replica(step: step_lib.Step, total: Any, dtype: Any) -> Any:
    return ops.cast(total, dtype) * ops.cast(step.share, dtype)
