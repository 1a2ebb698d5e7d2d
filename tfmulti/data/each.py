"""Reading a batch example by example, and naming the one that is broken.

An image is decoded alone, and an op that fails in a graph cannot say which
file it was given. So each batch is read by a small dataset of its own that
passes over failures; if rows are missing afterwards, their names are the
error (`read_each`) or they are marked (`read_marked`). Everything stays in
the graph: no Python runs while data are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def read_each(
    load: Callable[..., Any],
    inputs: Any,
    spec: Any,
    names: Callable[[tf.Tensor], tf.Tensor],
) -> Any:
    """Applies `load` to every row and puts the results together.

    Args:
        load: From one row of `inputs` to one example; it may fail.
        inputs: Tensors with [rows] in front, one or a tuple of them.
        spec: Structure of `tf.TensorSpec` of one example.
        names: From row numbers, int64 [broken], to a name for each, string
            [broken], for the error.

    Returns:
        Examples with [rows] in front. Reading them fails with an
        `InvalidArgumentError` that holds the names of all broken rows.
    """
    examples, whole = read_marked(load, inputs, spec)
    broken = tf.where(~whole)[:, 0]
    check = tf.debugging.Assert(
        tf.reduce_all(whole),
        [
            "These examples are missing, damaged or of an unknown format:",
            names(broken),
        ],
        summarize=10,
    )
    with tf.control_dependencies([check]):
        return tf.nest.map_structure(tf.identity, examples)


def read_marked(
    load: Callable[..., Any], inputs: Any, spec: Any
) -> tuple[Any, tf.Tensor]:
    """Applies `load` to every row; marks the rows where it failed.

    Args:
        load: As for `read_each`, like all that follow.
        inputs: Tensors with [rows] in front, one or a tuple of them.
        spec: Structure of `tf.TensorSpec` of one example.

    Returns:
        Examples with [rows] in front, zeros where `load` failed, and bool
        [rows], whether it did not.
    """
    first = tf.nest.flatten(inputs)[0]
    if first.shape[0]:
        return _read(load, inputs, spec)
    return tf.cond(
        tf.equal(tf.shape(first)[0], 0),
        lambda: (_nothing(spec), tf.zeros([0], tf.bool)),
        lambda: _read(load, inputs, spec),
    )


def _read(
    load: Callable[..., Any], inputs: Any, spec: Any
) -> tuple[Any, tf.Tensor]:
    rows = tf.shape(tf.nest.flatten(inputs)[0], tf.int64)[0]

    def numbered(row: tf.Tensor, given: Any) -> tuple[tf.Tensor, Any]:
        example = load(*given) if isinstance(given, tuple) else load(given)
        return row, tf.nest.map_structure(
            lambda s, t: tf.ensure_shape(t, s.shape), spec, example
        )

    batches = (
        tf.data.Dataset.from_tensor_slices((tf.range(rows), inputs))
        .map(numbered)
        .ignore_errors()
        .batch(rows)
        # If no row is whole there is no batch: an empty one takes its place.
        .concatenate(tf.data.Dataset.from_tensors(_no_row(spec)))
        .take(1)
        .with_options(_plain())
    )
    good, examples = batches.get_single_element()
    whole = tf.scatter_nd(good[:, None], tf.ones_like(good, tf.bool), [rows])
    examples = tf.cond(
        tf.reduce_all(whole),
        lambda: examples,
        lambda: _spread(examples, good, rows),
    )
    return examples, whole


def _spread(examples: Any, good: tf.Tensor, rows: tf.Tensor) -> Any:
    """Puts each example into its row, among rows of zeros."""

    def spread(part: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([rows[None], tf.shape(part, tf.int64)[1:]], 0)
        return tf.scatter_nd(good[:, None], part, shape)

    return tf.nest.map_structure(spread, examples)


def _no_row(spec: Any) -> tuple[tf.Tensor, Any]:
    return tf.zeros([0], tf.int64), _nothing(spec)


def _nothing(spec: Any) -> Any:
    return tf.nest.map_structure(
        lambda s: tf.zeros([0, *s.shape], s.dtype), spec
    )


def _plain() -> tf.data.Options:
    """These datasets live for one batch: no optimiser and no tuning."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options
