"""A loop of its own with strategy.run, as TensorFlow's guide shows it."""

import keras
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
x = np.linspace(0, 1, 64, dtype="float32").reshape(16, 4)
y = x.sum(axis=1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
with strategy.scope():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.3)


def step(batch):
    images, targets = batch
    with tf.GradientTape() as tape:
        errors = tf.reduce_sum((model(images) - targets) ** 2, axis=-1)
        loss = tf.nn.compute_average_loss(errors, global_batch_size=8)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(
        zip(gradients, model.trainable_variables, strict=True)
    )
    return loss


@tf.function
def global_step(batch):
    losses = strategy.run(step, args=(batch,))
    return strategy.reduce("SUM", losses, axis=None)


for batch in strategy.experimental_distribute_dataset(data):
    print(f"loss {global_step(batch):.5f}")
