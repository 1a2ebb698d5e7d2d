"""Models with a `train_step` of their own, as people write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.equivalence import problems
from tests.equivalence.outcome import (
    BatchLogs,
    flat,
    history_of,
    state_of,
    trained,
)
from tests.equivalence.program import Place, program

L = keras.layers
K = keras.optimizers


class Step(keras.Model):
    """Two layers and the train_step of Keras's guide."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = L.Dense(4, "tanh")
        self.last = L.Dense(1)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.last(self.hidden(x))

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            prediction = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=prediction)
        self.update(tape, loss)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, prediction)
        return {m.name: m.result() for m in self.metrics}

    def update(self, tape: tf.GradientTape, loss: Any) -> None:
        """Applies the gradient of the loss."""
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(
            zip(gradients, self.trainable_variables, strict=True)
        )


def _step(place: Place, model: type[Step], **options: Any) -> dict[str, Any]:
    """Trains one of the models below, with uneven ends."""
    logs = BatchLogs()
    options = {"metrics": ["mae"]} | options
    result = trained(
        place,
        lambda: problems.compiled(model(), K.Adam(0.05), **options),
        *problems.regression(11),
        callbacks=[logs],
    )
    return result | logs.arrays()


@program("step/compute_loss", "A26")
def compute_loss(place: Place) -> dict[str, Any]:
    return _step(place, Step)


@program("step/compute_loss, several steps per execution")
def compute_loss_executions(place: Place) -> dict[str, Any]:
    return _step(place, Step, steps_per_execution=2)


@program("step/compute_loss, eager")
def compute_loss_eager(place: Place) -> dict[str, Any]:
    return _step(place, Step, run_eagerly=True)


class OwnLoss(Step):
    """Computes a mean of its own, and returns it without a metric."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
        self.update(tape, loss)
        return {"loss": loss}


@program("step/own mean, returned as it is", "A26")
def own_loss(place: Place) -> dict[str, Any]:
    return _step(place, OwnLoss, metrics=None)


@program("step/own mean, several steps per execution")
def own_loss_executions(place: Place) -> dict[str, Any]:
    return _step(place, OwnLoss, metrics=None, steps_per_execution=3)


class Tracked(OwnLoss):
    """Keeps the mean in a tracker."""

    def __init__(self) -> None:
        super().__init__()
        self.tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self) -> list[Any]:
        return [self.tracker]

    def train_step(self, data: Any) -> dict[str, Any]:
        self.tracker.update_state(super().train_step(data)["loss"])
        return {"loss": self.tracker.result()}

    def test_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        loss = tf.reduce_mean(tf.square(self(x, training=False) - y))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


@program("step/own mean in a tracker", "A26")
def tracked(place: Place) -> dict[str, Any]:
    return _step(place, Tracked)


class Clipped(OwnLoss):
    """Clips the global norm itself."""

    def update(self, tape: tf.GradientTape, loss: Any) -> None:
        gradients = tape.gradient(loss, self.trainable_variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 0.1)
        self.optimizer.apply(gradients, self.trainable_variables)


@program("step/own clipping")
def clipped(place: Place) -> dict[str, Any]:
    return _step(place, Clipped, metrics=None)


class Summed(Step):
    """Divides a sum by the batch's size, as one device knows it."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            error = tf.reduce_sum(tf.square(self(x, training=True) - y))
            loss = error / tf.cast(tf.shape(x)[0], tf.float32)
        self.update(tape, loss)
        return {
            "loss": loss,
            "norm": tf.linalg.global_norm(
                [tf.convert_to_tensor(v) for v in self.trainable_variables]
            ),
        }


@program("step/sum over the batch's size")
def summed(place: Place) -> dict[str, Any]:
    return _step(place, Summed, metrics=None)


class GradientNorm(Step):
    """Reports the norm of the gradient."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss, "norm": tf.linalg.global_norm(gradients)}


@program("step/reports the gradient's norm")
def gradient_norm(place: Place) -> dict[str, Any]:
    return _step(place, GradientNorm, metrics=None)


class ScaledLoss(Step):
    """Uses the optimizer's loss scaling by hand."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


@program("step/loss scaling by hand", "A01")
def scaled_loss(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(
            ScaledLoss(), K.LossScaleOptimizer(K.SGD(0.05))
        ),
        *problems.regression(11),
    )


class OverriddenLoss(Step):
    """Overrides `compute_loss` and leaves the step to Keras."""

    train_step = keras.Model.train_step

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        return tf.reduce_mean(tf.abs(y - y_pred) ** 1.5)


@program("step/compute_loss overridden", "A03")
def overridden_loss(place: Place) -> dict[str, Any]:
    return _step(place, OverriddenLoss)


class OverriddenMetrics(Step):
    """Overrides `compute_metrics` and leaves the step to Keras."""

    train_step = keras.Model.train_step

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        results = super().compute_metrics(x, y, y_pred, sample_weight)
        results["largest_share"] = tf.reduce_mean(y_pred**2)
        return results


@program("step/compute_metrics overridden")
def overridden_metrics(place: Place) -> dict[str, Any]:
    return _step(place, OverriddenMetrics)


class Gan(keras.Model):
    """Two networks, two optimizers, and no `call`."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = keras.Sequential([keras.Input((2,)), L.Dense(3)])
        self.critic = keras.Sequential(
            [keras.Input((3,)), L.Dense(4, "tanh"), L.Dense(1)]
        )
        self.seen = [keras.metrics.Mean(name=n) for n in ("g_loss", "c_loss")]

    def compile(self, generator: Any, critic: Any, **options: Any) -> None:
        super().compile(**options)
        self.generator_optimizer = generator
        self.critic_optimizer = critic

    @property
    def metrics(self) -> list[Any]:
        return self.seen

    def latents(self, real: Any) -> Any:
        """Gives the generator's input, known from the data."""
        return real[:, :2] ** 2

    def train_step(self, data: Any) -> dict[str, Any]:
        real = data[0] if isinstance(data, tuple) else data
        latents = self.latents(real)
        with tf.GradientTape() as tape:
            fake = self.generator(latents, training=True)
            c_loss = self.critic_loss(real, fake)
        weights = self.critic.trainable_weights
        self.critic_optimizer.apply_gradients(
            zip(tape.gradient(c_loss, weights), weights, strict=True)
        )
        with tf.GradientTape() as tape:
            fake = self.generator(latents, training=True)
            g_loss = keras.losses.BinaryCrossentropy(from_logits=True)(
                tf.ones((tf.shape(real)[0], 1)), self.critic(fake)
            )
        weights = self.generator.trainable_weights
        self.generator_optimizer.apply_gradients(
            zip(tape.gradient(g_loss, weights), weights, strict=True)
        )
        for metric, value in zip(self.seen, (g_loss, c_loss), strict=True):
            metric.update_state(value)
        return {m.name: m.result() for m in self.seen}

    def critic_loss(self, real: Any, fake: Any) -> Any:
        """Gives the critic's loss."""
        logits = self.critic(tf.concat([real, fake], axis=0), training=True)
        ones = tf.ones((tf.shape(real)[0], 1))
        return keras.losses.BinaryCrossentropy(from_logits=True)(
            tf.concat([ones, 0 * ones], axis=0), logits
        )


class Wasserstein(Gan):
    """A critic with a gradient penalty on its inputs."""

    def critic_loss(self, real: Any, fake: Any) -> Any:
        with tf.GradientTape() as tape:
            between = 0.3 * real + 0.7 * fake
            tape.watch(between)
            value = self.critic(between, training=True)
        slopes = tf.norm(tape.gradient(value, between), axis=1)
        gain = self.critic(real) - self.critic(fake)
        return tf.reduce_mean((slopes - 1.0) ** 2) - tf.reduce_mean(gain)


class DrawnGan(Gan):
    """Draws as many latents as there are rows, all of them zero."""

    def latents(self, real: Any) -> Any:
        return 0.0 * keras.random.normal((tf.shape(real)[0], 2)) + 1.0


def _gan(
    place: Place, model: type[Gan], data: Any = None, **options: Any
) -> dict[str, Any]:
    with place.scope():
        gan = model()
        gan.compile(K.Adam(0.02), K.Adam(0.05, global_clipnorm=0.5), **options)
    if data is None:
        data = problems.regression(11)[0]
    history = gan.fit(data, batch_size=4, epochs=2, shuffle=False, verbose=0)
    return history_of(history) | state_of(place, gan)


@program("step/gan", "A25")
def gan(place: Place) -> dict[str, Any]:
    return _gan(place, Gan)


@program("step/gan of a dataset with static shapes", "A25")
def gan_static(place: Place) -> dict[str, Any]:
    data = tf.data.Dataset.from_tensor_slices(problems.regression(24)[0])
    return _gan(place, Gan, data.batch(12, drop_remainder=True))


@program("step/gan, several steps per execution", "A25")
def gan_executions(place: Place) -> dict[str, Any]:
    return _gan(place, Gan, steps_per_execution=2)


@program("step/gan that draws unseeded", "A05", "A25")
def gan_drawn(place: Place) -> dict[str, Any]:
    return _gan(place, DrawnGan)


@program("step/gan with a gradient penalty", "A25")
def wasserstein(place: Place) -> dict[str, Any]:
    return _gan(place, Wasserstein)


@program("step/gan of a generator", "A06", "A25")
def gan_generator(place: Place) -> dict[str, Any]:
    x, _ = problems.regression(11)

    def batches() -> Iterator[Any]:
        for _ in range(2):
            for begin in (0, 4, 8):
                yield (x[begin : begin + 4],)

    with place.scope():
        model = Gan()
        model.compile(K.Adam(0.02), K.Adam(0.05))
    history = model.fit(batches(), epochs=2, steps_per_epoch=3, verbose=0)
    return history_of(history) | state_of(place, model)


class Vae(keras.Model):
    """A variational autoencoder whose noise comes with the data."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = L.Dense(4)
        self.decoder = L.Dense(3)
        self.trackers = [
            keras.metrics.Mean(name=n) for n in ("loss", "rebuilt", "apart")
        ]

    @property
    def metrics(self) -> list[Any]:
        return self.trackers

    def train_step(self, data: Any) -> dict[str, Any]:
        x, noise = data
        with tf.GradientTape() as tape:
            mean, spread = tf.split(self.encoder(x), 2, axis=1)
            found = self.decoder(mean + tf.exp(spread / 2) * noise)
            rebuilt = tf.reduce_mean(tf.reduce_sum((x - found) ** 2, axis=1))
            apart = 1 + spread - mean**2 - tf.exp(spread)
            apart = tf.reduce_mean(-0.5 * tf.reduce_sum(apart, axis=1))
            loss = rebuilt + apart
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(
            zip(gradients, self.trainable_weights, strict=True)
        )
        values = (loss, rebuilt, apart)
        for tracker, value in zip(self.trackers, values, strict=True):
            tracker.update_state(value)
        return {m.name: m.result() for m in self.trackers}


@program("step/vae without call")
def vae(place: Place) -> dict[str, Any]:
    x, _ = problems.regression(11)
    noise = problems.regression(11, 2, seed=5)[0]
    with place.scope():
        model = Vae()
        model.compile(K.Adam(0.05))
    history = model.fit(
        x, noise, batch_size=4, epochs=2, shuffle=False, verbose=0
    )
    return history_of(history) | state_of(place, model)


class Distiller(keras.Model):
    """A student that learns from labels and from a frozen teacher."""

    def __init__(self) -> None:
        super().__init__()
        self.student = problems.dense(3)
        self.teacher = problems.dense(3)
        self.teacher.trainable = False

    def call(self, x: Any, training: bool = False) -> Any:
        return self.student(x, training=training)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        own = super().compute_loss(x, y, y_pred, sample_weight)
        soft = keras.losses.KLDivergence()(
            tf.nn.softmax(self.teacher(x, training=False) / 2),
            tf.nn.softmax(y_pred / 2),
        )
        return 0.5 * own + 0.5 * soft


@program("step/distillation")
def distillation(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        return problems.compiled(
            Distiller(),
            K.Adam(0.05),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )

    return trained(place, build, *problems.classes(11))


class Target(OwnLoss):
    """Follows its weights by a slow copy, as deep Q-learning does."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = L.Dense(1, trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        hidden = self.hidden(x)
        self.slow(hidden)
        return self.last(hidden)

    def train_step(self, data: Any) -> dict[str, Any]:
        logs = super().train_step(data)
        pairs = zip(self.slow.weights, self.last.weights, strict=True)
        for slow, fast in pairs:
            slow.assign(0.9 * slow + 0.1 * fast)
        return logs


@program("step/slow copy of weights", "A28")
def slow_copy(place: Place) -> dict[str, Any]:
    return _step(place, Target, metrics=None)


class Counting(Step):
    """Decides by a counter of its own whether to train a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.count = self.add_weight(
            shape=(), initializer="zeros", trainable=False, dtype="int32"
        )

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        often = tf.cast(self.count % 2, tf.float32)
        self.optimizer.apply(
            [gradients[0] * often, *gradients[1:]], self.trainable_variables
        )
        self.count.assign_add(1)
        return {"loss": loss}


@program("step/counter of its own")
def counting(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(Counting(), K.SGD(0.05)),
        *problems.regression(11),
    )


class Predicts(Step):
    """Has steps of its own for tests and predictions."""

    def test_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        prediction = self(x, training=False)
        loss = self.compute_loss(x=x, y=y, y_pred=prediction)
        return {"loss": loss, "worst": tf.reduce_mean((y - prediction) ** 4)}

    def predict_step(self, data: Any) -> Any:
        x = data[0] if isinstance(data, tuple) else data
        return {"mean": self(x), "input": x}


@program("step/own test and prediction")
def predicts(place: Place) -> dict[str, Any]:
    x, y = problems.regression(11)
    with place.scope():
        model = problems.compiled(Predicts(), K.SGD(0.05))
    model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    logs = model.evaluate(x, y, batch_size=11, verbose=0, return_dict=True)
    outputs = model.predict(x, batch_size=4, verbose=0)
    return logs | flat("predict", outputs) | state_of(place, model)


class Meta(Step):
    """Takes a gradient through the gradient of its weights."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            kernel = self.last.kernel
            slope = inner.gradient(loss, kernel.value)
            total = loss + 0.1 * tf.reduce_sum(slope**2)
        self.update(outer, total)
        return {"loss": total}


@program("step/gradient through a gradient of weights")
def through_gradient(place: Place) -> dict[str, Any]:
    x, y = problems.regression(12)
    return trained(
        place,
        lambda: problems.compiled(Meta(), K.SGD(0.05)),
        x,
        y,
        batch_size=12,
        evaluate=False,
    )


class Persistent(Step):
    """Asks one tape twice."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            prediction = self(x, training=True)
            first = tf.reduce_mean((prediction - y) ** 2)
            second = tf.reduce_mean(tf.abs(prediction))
        one = tape.gradient(first, self.hidden.trainable_variables)
        two = tape.gradient(second, self.last.trainable_variables)
        del tape
        self.optimizer.apply(one + two, self.trainable_variables)
        return {"first": first, "second": second}


@program("step/one tape asked twice")
def persistent(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(Persistent(), K.SGD(0.05)),
        *problems.regression(11),
        evaluate=False,
    )


@program("step/accumulates by itself")
def accumulates(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(
            Step(), K.SGD(0.05, gradient_accumulation_steps=2)
        ),
        *problems.regression(16),
    )


class Rows(Step):
    """Weighs examples by what the data brings along."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            prediction = self(x, training=True)
            loss = self.compute_loss(
                x=x, y=y, y_pred=prediction, sample_weight=weight
            )
        self.update(tape, loss)
        return self.compute_metrics(x, y, prediction, weight)


@program("step/sample weights")
def rows(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(
            Rows(), K.SGD(0.05), weighted_metrics=["mae"]
        ),
        *problems.regression(11),
        sample_weight=problems.weights(11),
    )


@program("step/integers and vectors among the logs")
def other_logs(place: Place) -> dict[str, Any]:
    class Logs(OwnLoss):
        def train_step(self, data: Any) -> dict[str, Any]:
            logs = super().train_step(data)
            return logs | {"step": self.optimizer.iterations + 0}

    x, y = problems.regression(8)
    return trained(
        place,
        lambda: problems.compiled(Logs(), K.SGD(0.05)),
        x,
        y.astype(np.float32),
        evaluate=False,
    )
