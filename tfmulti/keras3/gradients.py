"""Gradients are global where they are made: at `tape.gradient`.

On one device `tape.gradient(loss, variables)` gives the gradient of the whole
batch, and code that follows may clip it, log it, add noise to it or feed it to
any optimizer. On N replicas stock Keras gives each replica the gradient of its
own part and sums only inside the optimizer, after everything that a person's
`train_step` did with it. Here, inside a step of the engine, the tape itself

    1. weights the target by the replica's share (as the gradient's seed, so
       that it costs one scalar and not one operation a variable), and
    2. sums over replicas what it computed for variables, in one all-reduce.

Gradients for tensors (a gradient penalty's inputs) stay local, as they belong
to the replica's own examples; so do those of a tape inside a running gradient
(rematerialisation).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfmulti.keras3 import reduction
from tfmulti.keras3 import step as step_lib


def variable_key(variable: Any) -> int:
    """Gives one number for a variable, equal on all replicas.

    Args:
        variable: A Keras variable, a distributed variable or one of its
            components.
    """
    if isinstance(variable, keras.Variable):
        variable = variable.value
    container = getattr(variable, "_distributed_container", None)
    return id(container() if container is not None else variable)


def is_variable(source: Any) -> bool:
    """Whether a gradient for `source` belongs to all replicas."""
    return isinstance(source, (keras.Variable, tf.Variable))


def global_gradient(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `tf.GradientTape.gradient` so that it gives global gradients."""

    def gradient(
        tape: tf.GradientTape,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        step = step_lib.current()
        flat = tf.nest.flatten(sources)
        if (
            step is None
            or step.in_gradient
            or step_lib.replica_context() is None
            or not any(map(is_variable, flat))
        ):
            return original(
                tape, target, sources, output_gradients, *args, **kwargs
            )
        share = weight_of(step)
        every = all(map(is_variable, flat))
        if every and output_gradients is None:
            output_gradients = _seed(target, share)
            share = 1.0
        step.in_gradient = True
        try:
            local = original(
                tape, target, sources, output_gradients, *args, **kwargs
            )
        finally:
            step.in_gradient = False
        return _make_global(step, sources, local, share)

    return gradient


def weight_of(step: step_lib.Step) -> float | tf.Tensor:
    """Gives the weight of this replica's part in the global gradient.

    The sum over replicas is the gradient of the whole batch. Where it is
    deferred it is the mean instead, so that what an optimizer accumulates
    reads as on one device.
    """
    context = step_lib.replica_context()
    if context is None or not step.defer_gradients:
        return step.share
    return step.share * context.num_replicas_in_sync


def _seed(target: Any, share: float | tf.Tensor) -> Any:
    """Gives output gradients that weight every target by `share`."""

    def one(value: Any) -> Any:
        value = tf.convert_to_tensor(value)
        return tf.fill(tf.shape(value), tf.cast(share, value.dtype))

    return tf.nest.map_structure(one, target)


def _make_global(
    step: step_lib.Step, sources: Any, local: Any, share: float | tf.Tensor
) -> Any:
    variables = tf.nest.flatten(sources)
    gradients = tf.nest.flatten(local)
    chosen = [i for i, v in enumerate(variables) if is_variable(v)]
    weighted = [scale(gradients[i], share) for i in chosen]
    if not step.defer_gradients:
        weighted = reduction.sum_over_replicas(weighted)
        step.reduced.update(variable_key(variables[i]) for i in chosen)
    for index, value in zip(chosen, weighted, strict=True):
        gradients[index] = value
    return tf.nest.pack_sequence_as(local, gradients)


def scale(
    gradient: reduction.Gradient, share: float | tf.Tensor
) -> reduction.Gradient:
    """Multiplies a gradient, dense or sparse, by a scalar."""
    if gradient is None or (isinstance(share, float) and share == 1.0):
        return gradient
    if isinstance(gradient, tf.IndexedSlices):
        values = gradient.values * tf.cast(share, gradient.dtype)
        return tf.IndexedSlices(
            values, gradient.indices, gradient.dense_shape
        )
    return gradient * tf.cast(share, gradient.dtype)
