"""A subclassed model with a train_step and no call, as many GANs are."""

import keras
import numpy as np
import tensorflow as tf


class Fitter(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = keras.Sequential(
            [keras.Input((4,)), keras.layers.Dense(1)]
        )
        self.error = keras.losses.MeanSquaredError()
        self.tracker = keras.metrics.Mean(name="error")

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.error(y, self.inner(x))
        weights = self.inner.trainable_variables
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, weights), weights, strict=True)
        )
        self.tracker.update_state((self.inner(x) - y) ** 2)
        return {"error": self.tracker.result()}


keras.utils.set_random_seed(1)
x = np.linspace(0, 1, 64, dtype="float32").reshape(16, 4)
y = x.sum(axis=1, keepdims=True)
model = Fitter()
model.compile(optimizer=keras.optimizers.SGD(0.1))
history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
print("losses", " ".join(f"{v:.5f}" for v in history.history["error"]))
