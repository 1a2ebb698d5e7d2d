"""Synchronised batch statistics in one collective each way.

`BatchNormalization(synchronized=True)` needs the sum, the sum of squares and
the count over all replicas. Keras reduces the three one after the other and
their gradients too; here they travel as one vector, and so do the gradients,
since the gradient of one all-reduce is one all-reduce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfmulti.keras3 import reduction
from tfmulti.keras3 import step as step_lib


def packed_moments(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `backend.tensorflow.nn._compute_moments_sync`."""

    def moments(
        x: tf.Tensor, axes: Sequence[int], keepdims: bool
    ) -> tuple[tf.Tensor, tf.Tensor]:
        context = step_lib.replica_context()
        if context is None:
            return original(x, axes, keepdims)
        kept = tf.reduce_sum(x, axes, keepdims=True)
        squares = tf.reduce_sum(tf.square(x), axes, keepdims=True)
        counted = _counted(x.dtype)
        count = tf.cast(tf.size(x) / tf.size(kept), x.dtype) * counted
        packed = tf.concat(
            [
                tf.reshape(kept, [-1]) * counted,
                tf.reshape(squares, [-1]) * counted,
                tf.reshape(count, [1]),
            ],
            axis=0,
        )
        (total,) = reduction.sum_over_replicas([packed])
        size = tf.size(kept)
        mean = tf.math.divide_no_nan(total[:size], total[-1])
        variance = tf.maximum(
            tf.math.divide_no_nan(total[size:-1], total[-1])
            - tf.square(mean),
            0.0,
        )
        return tuple(
            _shaped(value, kept, axes, keepdims) for value in (mean, variance)
        )

    return moments


def _counted(dtype: Any) -> Any:
    """Gives 0 for a replica whose only row stands in for an empty part."""
    step = step_lib.current()
    if step is None or step.rows is None:
        return tf.ones([], dtype)
    return tf.cast(step.rows > 0, dtype)


def _shaped(
    value: tf.Tensor, like: tf.Tensor, axes: Sequence[int], keepdims: bool
) -> tf.Tensor:
    value = tf.ensure_shape(tf.reshape(value, tf.shape(like)), like.shape)
    return value if keepdims else tf.squeeze(value, axes)
