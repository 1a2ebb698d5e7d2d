"""The feed of a run: it goes on where an earlier run stopped."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tfmulti.config import Experiment
from tfmulti.data import DataInfo, DataSplits, Position
from tfmulti.data.arrays import ArraySource
from tfmulti.errors import UsageError
from tfmulti.train.feed import make_feed

pytestmark = pytest.mark.usefixtures("devices")

EXPERIMENT = Experiment(
    name="tiny",
    summary="for tests",
    task="classification",
    model="convnet",
    data="synthetic",
    epochs=2,
    global_batch_size=6,
    learning_rate=0.1,
)


def _feed(count=23, saved=None):
    splits = DataSplits(
        train=ArraySource(np.arange(count)),
        validation=None,
        info=DataInfo(description="numbers"),
    )
    strategy = tf.distribute.get_strategy()
    return make_feed(
        EXPERIMENT, splits, strategy, validate=False, saved=saved
    )


def test_a_run_goes_on_where_it_stopped():
    feed = _feed()
    unbroken = [x.numpy().tolist() for x in itertools.islice(feed.train, 8)]
    saved = Position.from_json(feed.position(3).to_json())
    rest = _feed(saved=saved)
    read = [x.numpy().tolist() for x in itertools.islice(rest.train, 5)]
    assert read == unbroken[3:]
    assert rest.position(4).global_step == 4


def test_a_run_does_not_go_on_with_other_data():
    saved = _feed().position(3)
    with pytest.raises(UsageError, match="data"):
        _feed(count=24, saved=saved)
