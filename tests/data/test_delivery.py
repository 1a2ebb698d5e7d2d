"""Delivery: the order's examples, on one device and on any division."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest
import tensorflow as tf

from tests.data import stores
from tfmulti import data
from tfmulti.data import permutation
from tfmulti.data.arrays import ArraySource
from tfmulti.data.order import ENDS, Order
from tfmulti.data.shuffle_op import epoch_state, shuffled
from tfmulti.errors import UsageError

pytestmark = pytest.mark.usefixtures("devices")

KINDS = sorted(stores.SOURCES)


@pytest.mark.parametrize(
    "count", [1, 2, 1437, 65_536, 65_537, 100_000, 262_145, 3 * 10**12]
)
def test_graph_and_numpy_define_one_order(count):
    """Also at 4**n + 1 examples, where the op alone repeats one."""
    last = np.arange(max(0, count - 50), count)
    positions = np.union1d(np.arange(min(count, 50)), last)
    for seed, epoch in ((0, 0), (-3, 1), (2**70, 10**6)):
        order = Order(example_count=count, global_batch_size=1, seed=seed)

        def of_epoch(number, order=order):
            state = epoch_state(order, number)
            return shuffled(tf.constant(positions), state, order)

        wanted = permutation.permute(positions, count, order.key(epoch))
        number = tf.constant(epoch, tf.int64)
        np.testing.assert_array_equal(of_epoch(number), wanted)
        np.testing.assert_array_equal(tf.function(of_epoch)(number), wanted)


@pytest.mark.parametrize("count", [65_537, 262_145])
def test_the_op_alone_repeats_an_example(count):
    """Turns red on the day that TensorFlow is mended; see `walk_limit`."""
    indices = tf.raw_ops.RandomIndexShuffle(
        index=tf.constant([0, count - 1], tf.int64),
        seed=tf.constant(permutation.key_of(0, 0), tf.uint32),
        max_index=tf.constant(count - 1, tf.int64),
        rounds=permutation.ROUNDS,
    ).numpy()
    assert indices[0] == indices[1]


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_once_per_epoch_from_every_source(kind, replicas, tmp_path):
    source = stores.SOURCES[kind](tmp_path)
    numbers = stores.numbers_of(source)
    order = Order(example_count=len(source), global_batch_size=6, seed=5)
    parts = data.worker_batches(
        source, order, replica_ids=range(replicas), replicas=replicas, epochs=2
    )
    read = [numbers(part) for part in parts]
    assert read == [
        order.indices(step, r, replicas).tolist()
        for step in range(2 * order.steps_per_epoch)
        for r in range(replicas)
    ]
    half = len(read) // 2
    epochs = [list(itertools.chain(*e)) for e in (read[:half], read[half:])]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(23))
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("workers", "local"), [(1, 3), (2, 1), (2, 2), (3, 1), (4, 2)]
)
def test_workers_together_read_the_global_batch(workers, local, end):
    numbers = np.arange(23)
    source = ArraySource((numbers[:, None], numbers))
    replicas = workers * local
    order = Order(example_count=23, global_batch_size=6, seed=5, end=end)
    readers = [
        data.worker_batches(
            source,
            order,
            replica_ids=range(w * local, (w + 1) * local),
            replicas=replicas,
            epochs=2,
        )
        for w in range(workers)
    ]
    assert len({r.cardinality().numpy() for r in readers}) == 1
    read = [[tuple(t.numpy() for t in e) for e in r] for r in readers]
    for step in range(2 * order.steps_per_epoch):
        parts = [e for r in read for e in _of_step(r, step, local)]
        got = np.concatenate([part[1] for part in parts])
        np.testing.assert_array_equal(got, order.indices(step))
        if end == "pad":
            weights = np.concatenate([part[2] for part in parts])
            np.testing.assert_array_equal(weights, order.weights(step))


def _of_step(elements, step, local):
    return elements[step * local : (step + 1) * local]


def _source(count=23):
    return ArraySource(np.arange(count))


def _read(dataset):
    return [batch.numpy().tolist() for batch in dataset]


@pytest.mark.parametrize("end", ["short", "drop"])
def test_resume_at_every_step_equals_the_unbroken_order(end):
    options = {"global_batch_size": 5, "seed": 1, "end": end}
    whole = _read(data.global_batches(_source(), epochs=3, **options))
    per_epoch = data.steps_per_epoch(23, 5, end)
    for start in range(len(whole)):
        rest = data.global_batches(
            _source(),
            epochs=3 - start // per_epoch,
            start_step=start,
            **options,
        )
        assert rest.cardinality() == len(whole) - start
        assert _read(rest) == whole[start:]


def test_a_far_step_of_a_large_set_is_reached_at_once():
    source = ArraySource(np.arange(10**6))
    order = Order(example_count=10**6, global_batch_size=64, seed=9)
    step = 10**8
    batches = data.global_batches(
        source, global_batch_size=64, seed=9, epochs=None, start_step=step
    )
    for i, batch in enumerate(batches.take(3)):
        np.testing.assert_array_equal(batch, order.indices(step + i))


def test_endless_says_so_and_goes_on_over_epochs():
    endless = data.global_batches(
        _source(), global_batch_size=5, seed=2, epochs=None
    )
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY
    finite = data.global_batches(
        _source(), global_batch_size=5, seed=2, epochs=4
    )
    assert _read(endless.take(20)) == _read(finite)


@pytest.mark.parametrize(
    ("count", "batch", "replicas", "end", "rows"),
    [
        (20, 4, 2, "short", 2),
        (23, 4, 2, "drop", 2),
        (23, 4, 4, "pad", 1),
        (23, 4, 2, "short", None),
        (20, 5, 2, "short", None),
    ],
)
def test_shapes_are_static_where_the_batch_divides(
    count, batch, replicas, end, rows
):
    numbers = np.arange(count)
    source = ArraySource((numbers[:, None], numbers))
    order = Order(example_count=count, global_batch_size=batch, end=end)
    dataset = data.worker_batches(source, order, replicas=replicas)
    assert dataset.element_spec[0].shape.as_list() == [rows, 1]


def test_fewer_rows_than_replicas_leave_some_without():
    order = Order(example_count=5, global_batch_size=4)
    part = data.worker_batches(
        _source(5), order, replica_ids=range(4), replicas=4
    )
    sizes = [len(batch) for batch in _read(part)]
    assert sizes == [1, 1, 1, 1, 0, 0, 0, 1]


@pytest.mark.parametrize("count", [24, 23])
@pytest.mark.parametrize("epochs", [1, 2])
def test_mirrored_replicas_read_their_rows(devices, count, epochs):
    strategy = tf.distribute.MirroredStrategy(devices[:3])
    options = {"global_batch_size": 7, "seed": 3, "epochs": epochs}
    with strategy.scope():
        source = _source(count)
        read = data.distributed(source, strategy, **options)
    whole = _read(data.global_batches(source, **options))
    got = [
        [
            part.numpy().tolist()
            for part in strategy.experimental_local_results(x)
        ]
        for x in read
    ]
    assert [list(itertools.chain(*parts)) for parts in got] == whole
    for parts, rows in zip(got, whole, strict=True):
        sizes = [
            len(data.rows_of_replica(len(rows), r, 3)) for r in range(3)
        ]
        assert [len(part) for part in parts] == sizes


def test_the_default_strategy_reads_global_batches():
    strategy = tf.distribute.get_strategy()
    read = data.distributed(_source(), strategy, global_batch_size=6)
    whole = data.global_batches(_source(), global_batch_size=6)
    assert _read(read) == _read(whole)


def test_two_readers_of_one_dataset_see_the_same():
    dataset = data.global_batches(_source(), global_batch_size=4)
    assert _read(dataset) == _read(dataset)


def test_dropped_examples_are_told(caplog):
    with caplog.at_level(logging.WARNING):
        data.global_batches(_source(), global_batch_size=5, end="drop")
    assert "3 of 23 examples are left out" in caplog.text


def test_padding_needs_a_place_for_weights():
    with pytest.raises(UsageError, match="pad"):
        data.global_batches(_source(), global_batch_size=5, end="pad")


def test_too_few_examples_for_a_batch():
    with pytest.raises(UsageError, match="23 examples"):
        data.global_batches(_source(), global_batch_size=24, end="drop")
