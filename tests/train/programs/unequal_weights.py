"""Worker 1 changes a weight behind the strategy's back; all compare."""

import json
import os

import keras
import tensorflow as tf

from tfmulti.train.checksum import check_weights_equal, weights_sha256

strategy = tf.distribute.get_strategy()
keras.utils.set_random_seed(1)
model = keras.Sequential(
    [keras.Input((4,)), keras.layers.Dense(1, name="only")]
)
check_weights_equal(model, strategy)
print("weights sha256", weights_sha256(model))
task = json.loads(os.environ["TF_CONFIG"])["task"]
if task["index"] == 1:
    for copy in strategy.experimental_local_results(model.layers[0].bias.value):
        copy.assign_add(tf.ones_like(copy))
check_weights_equal(model, strategy)
