"""A script with a MirroredStrategy of its own and its scope."""

import keras
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
x = np.linspace(0, 1, 64, dtype="float32").reshape(16, 4)
y = x.sum(axis=1, keepdims=True)
with strategy.scope():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.3), loss="mse")
loss = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
print("replicas", strategy.num_replicas_in_sync)
print("losses", " ".join(f"{v:.5f}" for v in loss.history["loss"]))
