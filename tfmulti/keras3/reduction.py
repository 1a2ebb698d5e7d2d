"""Sums over replicas, many tensors in one collective.

`sum_over_replicas` hands all dense tensors of one call to the strategy
together, which packs them (tf.distribute packs what one call contains), so
that one update costs one all-reduce, whatever the number of variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfmulti.keras3 import step as step_lib

# A tensor, `IndexedSlices` or None.
Gradient = Any


def sum_over_replicas(values: Sequence[Gradient]) -> list[Gradient]:
    """Sums each value over all replicas; every replica gets the sum.

    Args:
        values: Tensors, `IndexedSlices` or None, the same structure on every
            replica. None stays None.

    Returns:
        The sums, in the order of `values`. Must be called in a replica
        context; with one replica the values are the sums.
    """
    context = step_lib.replica_context()
    if context is None:
        return list(values)
    step = step_lib.current()
    if step is not None and step.compiling:
        raise step_lib.NotCompilable
    result: list[Gradient] = [None] * len(values)
    for indices in _packable(values):
        reduced = context.all_reduce(
            tf.distribute.ReduceOp.SUM, [values[i] for i in indices]
        )
        for index, total in zip(indices, reduced, strict=True):
            if isinstance(total, tf.Tensor):
                total.set_shape(values[index].shape)
            result[index] = total
    return result


def _packable(values: Sequence[Gradient]) -> list[list[int]]:
    """Groups what can travel together: dense tensors of one dtype.

    Sparse ones are gathered one by one, by their strategy.
    """
    groups: dict[tuple[bool, tf.DType], list[int]] = {}
    for index, value in enumerate(values):
        if value is not None:
            sparse = isinstance(value, tf.IndexedSlices)
            groups.setdefault((sparse, value.dtype), []).append(index)
    return list(groups.values())


def packed_sum_over_replicas(
    values: Sequence[tf.Tensor],
) -> list[tf.Tensor]:
    """Sums small tensors of mixed shapes over replicas in one collective.

    All values travel as one float32 (or, if any is float64, float64) vector:
    meant for metric states and statistics, which are small.

    Args:
        values: Dense tensors; integers and booleans are sent as floats.

    Returns:
        The sums with the shapes and dtypes of `values`.
    """
    if not values:
        return []
    wide = any(v.dtype in (tf.float64, tf.int64) for v in values)
    dtype = tf.float64 if wide else tf.float32
    flat = [tf.cast(tf.reshape(v, [-1]), dtype) for v in values]
    (total,) = sum_over_replicas([tf.concat(flat, axis=0)])
    parts = tf.split(total, [tf.size(f) for f in flat], num=len(flat))
    return [
        tf.cast(tf.reshape(part, tf.shape(value)), value.dtype)
        for part, value in zip(parts, values, strict=True)
    ]
