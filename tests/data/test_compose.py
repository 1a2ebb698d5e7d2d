"""Parts, repetitions and mixtures: each example as often as it should be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.data import stores
from tfmulti import data
from tfmulti.data.arrays import ArraySource
from tfmulti.data.bad_records import BadRecords
from tfmulti.data.compose import Mixture, Repeat, Take
from tfmulti.data.images import ImageSource
from tfmulti.errors import UsageError

pytestmark = pytest.mark.usefixtures("devices")


def _source(first, count):
    return ArraySource(np.arange(first, first + count))


def _epoch(source, **options):
    batches = data.global_batches(source, global_batch_size=7, **options)
    return list(itertools.chain(*(b.numpy().tolist() for b in batches)))


def test_take_gives_the_first_examples_once():
    assert sorted(_epoch(Take(_source(0, 23), 10))) == list(range(10))


def test_repeat_gives_each_example_so_often():
    seen = np.bincount(_epoch(Repeat(_source(0, 9), 3)))
    np.testing.assert_array_equal(seen, np.full(9, 3))


@pytest.mark.parametrize(
    ("lengths", "weights", "shares"),
    [
        ((30, 10), (0.75, 0.25), (30, 10)),
        ((30, 10), (1, 1), (30, 30)),
        ((30, 10), (9, 1), (90, 10)),
        ((10, 10, 10), (0.7, 0.2, 0.1), (70, 20, 10)),
        ((7, 3), (1, 3), (7, 21)),
    ],
)
def test_a_mixture_holds_every_example_in_these_shares(
    lengths, weights, shares
):
    sources = [_source(100 * i, n) for i, n in enumerate(lengths)]
    mixture = Mixture(sources, weights)
    assert len(mixture) == sum(shares)
    seen = _epoch(mixture)
    for i, (length, share) in enumerate(zip(lengths, shares, strict=True)):
        mine = [x - 100 * i for x in seen if x // 100 == i]
        assert len(mine) == share
        often = np.bincount(mine, minlength=length)
        assert len(often) == length and often.min() >= 1
        assert often.max() - often.min() <= 1


def test_mixtures_resume_and_are_divided_as_any_source():
    mixture = Mixture([_source(0, 9), _source(100, 9)], [2, 1])
    order = data.Order(example_count=len(mixture), global_batch_size=7)
    whole = [b.numpy().tolist() for b in data.worker_batches(mixture, order)]
    parts = data.worker_batches(
        mixture, order, replica_ids=range(4), replicas=4, start_step=2
    )
    read = [part.numpy().tolist() for part in parts]
    joined = [sum(read[i : i + 4], []) for i in range(0, len(read), 4)]
    assert joined == whole[2:]


def test_fingerprints_tell_compositions_apart():
    first, second = _source(0, 9), _source(9, 9)
    made = [
        first,
        Take(first, 8),
        Take(first, 7),
        Repeat(first, 2),
        Mixture([first, second], [1, 1]),
        Mixture([first, second], [2, 1]),
        Mixture([second, first], [1, 1]),
    ]
    assert len({source.fingerprint for source in made}) == len(made)


def test_damaged_examples_keep_their_names(tmp_path):
    paths = stores.write_images(tmp_path, 4)
    images = ImageSource(paths, [0, 1, 2, 3], stores.SHAPE, stores.PIXELS)
    others = ArraySource(
        (np.zeros((3, *stores.SHAPE), np.float32), np.zeros(3, np.int32))
    )
    paths[2].write_bytes(b"no image")
    bad = BadRecords()
    mixture = Mixture([Repeat(Take(others, 2), 2), Take(images, 4)], [1, 1])
    batches = data.global_batches(
        mixture, global_batch_size=8, shuffle=False, bad_records=bad
    )
    ((_, _, weights),) = batches
    np.testing.assert_array_equal(weights, [1, 1, 1, 1, 1, 1, 0, 1])
    assert bad.names == {6: str(paths[2])}


@pytest.mark.parametrize("weights", [(), (1,), (1, 0), (1, -1), (1, np.inf)])
def test_weights_that_cannot_be(weights):
    with pytest.raises(UsageError, match="weight"):
        Mixture([_source(0, 3), _source(0, 3)], weights)


def test_examples_of_a_mixture_must_look_alike():
    other = ArraySource(np.zeros(3, np.float32))
    with pytest.raises(UsageError, match="same structure"):
        Mixture([_source(0, 3), other], [1, 1])


@pytest.mark.parametrize("count", [0, 4])
def test_take_of_more_than_there_is(count):
    with pytest.raises(UsageError, match="of 3 examples"):
        Take(_source(0, 3), count)


def test_an_empty_fetch_of_a_mixture():
    mixture = Mixture([_source(0, 3), _source(9, 3)], [1, 1])
    fetch = tf.function(mixture.fetch)
    assert fetch(tf.constant([], tf.int64)).shape == (0,)
