"""Loops of a person's own around `strategy.run`, as tf.distribute has them.

There the old convention holds: a replica's loss is divided by the global
batch's size (or a mean by the number of replicas) and the optimizer sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.equivalence import problems
from tests.equivalence.outcome import state_of
from tests.equivalence.program import Place, program

L = keras.layers
K = keras.optimizers
BATCH = 12


def _parts(place: Place, x: Any, y: Any) -> Any:
    """Gives each replica's rows of one global batch."""
    rows = BATCH // place.replicas

    def part(context: Any) -> Any:
        first = context.replica_id_in_sync_group * rows
        return x[first : first + rows], y[first : first + rows]

    return place.strategy.experimental_distribute_values_from_function(part)


def _loop(
    place: Place,
    model: keras.Model,
    step: Callable[[Any, Any], Any],
    scalar: bool = True,
) -> Iterator[Any]:
    """Runs four steps; yields the summed value of each."""
    x, y = problems.regression(BATCH)
    if place.strategy is None:
        run = tf.function(step)
        for _ in range(4):
            yield run(x, y).numpy()
        return
    strategy = place.strategy

    @tf.function
    def run_all(parts: Any) -> Any:
        values = strategy.run(step, args=parts)
        return strategy.reduce("SUM", values, axis=None)

    for _ in range(4):
        yield run_all(_parts(place, x, y)).numpy()


def _mean_of_batch(model: keras.Model, x: Any, y: Any) -> Any:
    error = tf.reduce_mean((model(x, training=True) - y) ** 2, axis=1)
    return tf.nn.compute_average_loss(error, global_batch_size=BATCH)


def _descent(
    place: Place, optimizer: Callable[[], Any], lazy: bool = False
) -> dict[str, Any]:
    with place.scope():
        model, chosen = problems.dense(), optimizer()
        if not lazy:
            chosen.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = _mean_of_batch(model, x, y)
        gradients = tape.gradient(loss, model.trainable_variables)
        chosen.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )
        return loss

    losses = list(_loop(place, model, step))
    model.optimizer = chosen
    return state_of(place, model) | {"losses": losses}


@program("loop/adam")
def adam(place: Place) -> dict[str, Any]:
    return _descent(place, lambda: K.Adam(0.05))


@program("loop/optimizer built in the first step")
def lazy(place: Place) -> dict[str, Any]:
    return _descent(place, lambda: K.Adam(0.05), lazy=True)


@program("loop/clipping")
def clipping(place: Place) -> dict[str, Any]:
    return _descent(place, lambda: K.SGD(0.05, global_clipnorm=0.1))


@program("loop/accumulation")
def accumulation(place: Place) -> dict[str, Any]:
    return _descent(place, lambda: K.SGD(0.05, gradient_accumulation_steps=2))


@program("loop/ema overwrite", "A27")
def ema(place: Place) -> dict[str, Any]:
    return _descent(
        place,
        lambda: K.SGD(0.05, use_ema=True, ema_overwrite_frequency=2),
    )


@program("loop/loss of Keras and metrics")
def keras_loss(place: Place) -> dict[str, Any]:
    with place.scope():
        model, chosen = problems.dense(), K.SGD(0.05)
        loss_of = keras.losses.MeanSquaredError()
        metric = keras.metrics.MeanAbsoluteError()
        chosen.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            prediction = model(x, training=True)
            # Keras divides by the number of replicas itself.
            loss = loss_of(y, prediction)
        gradients = tape.gradient(loss, model.trainable_variables)
        chosen.apply(gradients, model.trainable_variables)
        metric.update_state(y, prediction)
        return loss

    losses = list(_loop(place, model, step))
    return state_of(place, model) | {
        "losses": losses,
        "metric": np.asarray(metric.result()),
    }


@program("loop/loss scaling", "A01", "A02")
def loss_scaling(place: Place) -> dict[str, Any]:
    with place.scope():
        model = problems.dense()
        chosen = K.LossScaleOptimizer(K.SGD(0.05))
        chosen.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = _mean_of_batch(model, x, y)
            scaled = chosen.scale_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_variables)
        chosen.apply(gradients, model.trainable_variables)
        return loss

    losses = list(_loop(place, model, step))
    model.optimizer = chosen
    return state_of(place, model) | {"losses": losses}


@program("loop/distributed dataset")
def distributed_dataset(place: Place) -> dict[str, Any]:
    x, y = problems.regression(2 * BATCH)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    with place.scope():
        model, chosen = problems.dense(), K.SGD(0.05)
        chosen.build(model.trainable_variables)

    def step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = _mean_of_batch(model, *batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        chosen.apply(gradients, model.trainable_variables)
        return loss

    if place.strategy is None:
        losses = [tf.function(step)(batch).numpy() for batch in data]
        return state_of(place, model) | {"losses": losses}
    strategy = place.strategy

    @tf.function
    def run(batch: Any) -> Any:
        values = strategy.run(step, args=(batch,))
        return strategy.reduce("SUM", values, axis=None)

    batches = strategy.experimental_distribute_dataset(data)
    losses = [run(batch).numpy() for batch in batches]
    return state_of(place, model) | {"losses": losses}
