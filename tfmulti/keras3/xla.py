"""XLA inside the replica: forward and backward compiled, the rest outside.

A whole step cannot be compiled: XLA has no kernel for TensorFlow's
all-reduce, and it sees one device. So each replica's loss and gradients are
one compiled function of its own part, and the sum over replicas, the update
and the metrics stay outside.

    strategy.run ─► replica: [XLA: forward, loss, backward]
                             ─► all-reduce ─► update ─► metrics

It serves Keras's own `train_step`. A loss or layer that needs the other
replicas while it computes (a masked mean, synchronised BatchNormalization)
cannot be compiled; the step then runs without XLA, and one warning says so.
"""

from __future__ import annotations

import logging
from typing import Any

import keras
import tensorflow as tf
from keras.src.trainers.data_adapters import data_adapter_utils

from tfmulti.keras3 import gradients as gradients_lib
from tfmulti.keras3 import reduction
from tfmulti.keras3 import step as step_lib


def train_step(model: keras.Model, data: Any) -> Any:
    """Does what Keras's `train_step` does, forward and backward compiled.

    Args:
        model: A compiled model with Keras's own `train_step`.
        data: This replica's part of the batch.

    Returns:
        The model's metrics, as Keras's `train_step` gives them.
    """
    step = step_lib.current()
    assert step is not None
    x, y, weight = data_adapter_utils.unpack_x_y_sample_weight(data)
    variables = model.trainable_weights

    def compiled(x: Any, y: Any, weight: Any) -> Any:
        with step_lib.compiling(step):
            return _loss_and_gradients(model, step, x, y, weight)

    # A function of its own for each replica: the trace holds its variables.
    local = tf.function(compiled, jit_compile=True, autograph=False)
    loss, predictions, gradients = local(x, y, weight)
    model._loss_tracker.update_state(
        keras.src.losses.loss.unscale_loss_for_distribution(loss),
        sample_weight=tf.shape(
            next(i for i in keras.tree.flatten(x) if i is not None)
        )[0],
    )
    if not step.defer_gradients:
        gradients = reduction.sum_over_replicas(gradients)
        step.reduced.update(map(gradients_lib.variable_key, variables))
    model.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return model.compute_metrics(x, y, predictions, sample_weight=weight)


def _loss_and_gradients(
    model: keras.Model, step: step_lib.Step, x: Any, y: Any, weight: Any
) -> tuple[tf.Tensor, Any, list[Any]]:
    with tf.GradientTape() as tape:
        if model._call_has_training_arg:
            predictions = model(x, training=True)
        else:
            predictions = model(x)
        loss = model._compute_loss(
            x=x, y=y, y_pred=predictions, sample_weight=weight, training=True
        )
        scaled = model.optimizer.scale_loss(loss)
    share = tf.cast(gradients_lib.weight_of(step), scaled.dtype)
    seed = tf.fill(tf.shape(scaled), share)
    step.in_gradient = True  # The sum over replicas comes after this.
    try:
        gradients = tape.gradient(
            scaled, model.trainable_weights, output_gradients=seed
        )
    finally:
        step.in_gradient = False
    return loss, predictions, gradients


def warn_without(reason: str) -> None:
    """Says once for a model that its step runs without XLA, and why."""
    logging.getLogger("tfmulti").warning(
        "jit_compile=True has no effect on this model's training: %s", reason
    )
