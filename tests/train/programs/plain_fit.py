"""A Keras script as people write it; it knows nothing of tfmulti."""

import argparse

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
flags = parser.parse_args()

keras.utils.set_random_seed(1)
x = np.random.rand(64, 4).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.3), loss="mse")
history = model.fit(
    x, y, batch_size=16, epochs=flags.epochs, shuffle=False, verbose=0
)
print("replicas", tf.distribute.get_strategy().num_replicas_in_sync)
print("losses", " ".join(f"{v:.5f}" for v in history.history["loss"]))
