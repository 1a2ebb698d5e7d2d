"""Metric values of the whole job, all metrics in one collective.

A metric's state is kept per replica and summed when it is read (Keras:
aggregation "sum", synchronization "on_read"). Reading each variable of each
metric by itself costs a collective a variable; here the states of all metrics
travel together and each `result` is computed from the sums:

    states of all metrics ──one all-reduce──► sums ──result()──► logs

While a step is traced, the engine notes which tensors came out of a metric's
`result`, so that a `train_step` may return what it likes: entries that came
from metrics are read this way, all others are averaged over the batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend.common.stateless_scope import StatelessScope

from tfmulti.keras3 import reduction
from tfmulti.keras3 import step as step_lib


def leaf_metrics(metrics: Iterable[Any]) -> list[keras.Metric]:
    """Lists all metrics, with those that compiled containers hold."""
    found: dict[int, keras.Metric] = {}
    for metric in metrics:
        inner = getattr(metric, "metrics", None)
        if inner:
            found.update((id(m), m) for m in leaf_metrics(inner))
        else:
            found[id(metric)] = metric
    return list(found.values())


@contextlib.contextmanager
def results_noted(metrics: Sequence[keras.Metric]) -> Iterator[None]:
    """Notes in the current step what each metric's `result` returns."""
    for metric in metrics:
        object.__setattr__(metric, "result", _noting(metric, metric.result))
    try:
        yield
    finally:
        for metric in metrics:
            metric.__dict__.pop("result", None)


@contextlib.contextmanager
def results_given(
    metrics: Sequence[keras.Metric], results: Sequence[Any]
) -> Iterator[None]:
    """Lets each metric's `result` return a value that was computed before."""
    for metric, value in zip(metrics, results, strict=True):
        object.__setattr__(metric, "result", lambda value=value: value)
    try:
        yield
    finally:
        for metric in metrics:
            metric.__dict__.pop("result", None)


def _noting(metric: keras.Metric, original: Any) -> Any:
    def result() -> Any:
        value = original()
        step = step_lib.current()
        if step is not None:
            for path, leaf in _leaves(value):
                # The tensor is kept, so that its id is not given again.
                step.results[id(leaf)] = (leaf, metric, path)
        return value

    return result


def _leaves(value: Any) -> list[tuple[str | None, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return [(None, value)]


def weighted_scalar(original: Any) -> Any:
    """Wraps `Mean.update_state`: a scalar counts by the replica's share.

    A tracker that is given one number a step (a loss) averages these over the
    steps. On replicas with uneven parts the numbers must weigh by the parts,
    so that together they count as the one number of the whole batch.
    """

    def update_state(self: Any, values: Any, sample_weight: Any = None) -> Any:
        step = step_lib.current()
        if (
            step is not None
            and not step.even
            and sample_weight is None
            and tf.convert_to_tensor(values).shape.rank == 0
        ):
            sample_weight = step.share
        return original(self, values, sample_weight)

    return update_state


def global_values(
    metrics: Sequence[keras.Metric], others: Sequence[tf.Tensor]
) -> tuple[list[Any], list[tf.Tensor]]:
    """Computes each metric's result over all replicas, in one collective.

    Must be called in a replica context; gives every replica the same.

    Args:
        metrics: Metrics whose states are summed.
        others: Further tensors to sum in the same collective.

    Returns:
        The metrics' results, and the sums of `others`.
    """
    variables = [v for metric in metrics for v in metric.variables]
    states = [_contribution(v) for v in variables]
    sums = reduction.packed_sum_over_replicas([*states, *others])
    mapping = list(zip(variables, sums, strict=False))
    with StatelessScope(state_mapping=mapping):
        results = [metric.result() for metric in metrics]
    return results, sums[len(states) :]


def _contribution(variable: keras.Variable) -> tf.Tensor:
    """Gives what this replica adds so that the sum is the variable's value."""
    value = tf.convert_to_tensor(variable.value)
    context = step_lib.replica_context()
    if context is None or variable.aggregation == "sum":
        return value
    if variable.aggregation == "mean":
        return value / context.num_replicas_in_sync
    first = tf.equal(context.replica_id_in_sync_group, 0)
    return tf.where(first, value, tf.zeros_like(value))
