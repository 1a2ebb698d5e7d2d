"""The checksum sees every byte, and the comparison names what differs."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from tfmulti.errors import TfmultiError
from tfmulti.train.checksum import check_weights_equal, weights_sha256


@pytest.fixture
def strategy(devices):
    return tf.distribute.MirroredStrategy(devices[:3])


def model() -> keras.Model:
    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(2, name="first"),
            keras.layers.BatchNormalization(name="second"),
        ]
    )


def test_equal_weights_equal_digits_with_and_without_a_strategy(strategy):
    alone = model()
    with strategy.scope():
        mirrored = model()
    assert weights_sha256(mirrored) == weights_sha256(alone)
    check_weights_equal(mirrored, strategy)
    check_weights_equal(alone, tf.distribute.get_strategy())


def test_the_digits_follow_every_variable():
    changed = model()
    seen = {weights_sha256(changed)}
    for variable in changed.weights:
        variable.assign(variable + 1e-6)
        seen.add(weights_sha256(changed))
    assert len(seen) == 1 + len(changed.weights)


@pytest.mark.parametrize("replica", [1, 2])
def test_a_difference_between_replicas_is_named(strategy, replica: int):
    with strategy.scope():
        mirrored = model()
    bias = mirrored.get_layer("first").bias.value
    copy = strategy.experimental_local_results(bias)[replica]
    copy.assign_add(tf.ones_like(copy))
    with pytest.raises(TfmultiError, match=f"first/bias of replica {replica}"):
        check_weights_equal(mirrored, strategy)
