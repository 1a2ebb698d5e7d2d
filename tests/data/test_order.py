"""The order: exactly once, balanced, resumable, the same for any division."""

from __future__ import annotations

import numpy as np
import pytest

from tfmulti.data.order import ENDS, Order, rows_of_replica, steps_per_epoch
from tfmulti.errors import UsageError

REPLICAS = (1, 2, 3, 4, 8)


def test_rows_of_replicas_partition_every_batch():
    for row_count in range(70):
        for replicas in range(1, 18):
            parts = [
                rows_of_replica(row_count, r, replicas)
                for r in range(replicas)
            ]
            assert [i for p in parts for i in p] == list(range(row_count))
            sizes = [len(p) for p in parts]
            assert max(sizes) - min(sizes) <= 1


def test_steps_per_epoch():
    for end, steps in (("short", 4), ("pad", 4), ("drop", 3)):
        assert steps_per_epoch(10, 3, end) == steps
        assert steps_per_epoch(9, 3, end) == 3


def _epoch(order, epoch, replicas):
    steps = range(
        epoch * order.steps_per_epoch, (epoch + 1) * order.steps_per_epoch
    )
    return [
        np.concatenate(
            [order.indices(s, r, replicas) for r in range(replicas)]
        )
        for s in steps
    ]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("batch", [1, 3, 8, 23])
def test_each_example_once_per_epoch(end, replicas, batch):
    count = 23
    order = Order(
        example_count=count, global_batch_size=batch, seed=4, end=end
    )
    for epoch in range(3):
        batches = _epoch(order, epoch, replicas)
        whole = _epoch(order, epoch, 1)
        for got, wanted in zip(batches, whole, strict=True):
            np.testing.assert_array_equal(got, wanted)
        seen = np.bincount(np.concatenate(batches), minlength=count)
        if end == "short":
            assert (seen == 1).all()
        elif end == "drop":
            assert seen.max() == 1
            assert (seen == 0).sum() == order.dropped_per_epoch == count % batch
        else:
            assert seen.min() == 1
            assert (seen == 2).sum() == -count % batch


@pytest.mark.parametrize("replicas", REPLICAS)
def test_padding_has_weight_zero_and_examples_weight_one(replicas):
    order = Order(example_count=10, global_batch_size=7, seed=1, end="pad")
    weighted = np.zeros(10)
    for step in (0, 1):
        for r in range(replicas):
            indices = order.indices(step, r, replicas)
            np.add.at(weighted, indices, order.weights(step, r, replicas))
    np.testing.assert_array_equal(weighted, np.ones(10))


def test_an_epoch_may_be_divided_anew_at_every_step():
    order = Order(example_count=50, global_batch_size=9, seed=2)
    rng = np.random.default_rng(0)
    for _ in range(20):
        seen = []
        for step in range(order.steps_per_epoch):
            replicas = int(rng.integers(1, 9))
            seen += [order.indices(step, r, replicas) for r in range(replicas)]
        assert sorted(np.concatenate(seen)) == list(range(50))


def test_epochs_differ_and_seeds_differ():
    order = Order(example_count=100, global_batch_size=100, seed=0)
    other = Order(example_count=100, global_batch_size=100, seed=1)
    first, second = order.indices(0), order.indices(1)
    assert (first != second).mean() > 0.9
    assert (first != other.indices(0)).mean() > 0.9
    np.testing.assert_array_equal(first, order.indices(0))


def test_without_shuffling_the_source_order_is_kept():
    order = Order(example_count=7, global_batch_size=3, shuffle=False)
    got = np.concatenate([order.indices(s) for s in range(6)])
    np.testing.assert_array_equal(got, [*range(7), *range(7)])


def test_who_is_dropped_changes_with_the_epoch():
    order = Order(example_count=10, global_batch_size=8, end="drop")
    dropped = [
        frozenset(range(10)) - frozenset(order.indices(s)) for s in range(20)
    ]
    assert len(set(dropped)) > 10


@pytest.mark.parametrize(
    "bad",
    [
        {"example_count": 5, "global_batch_size": 6, "end": "drop"},
        {"example_count": 0, "global_batch_size": 6},
        {"example_count": 5, "global_batch_size": 0},
        {"example_count": 5, "global_batch_size": 5, "end": "wrap"},
    ],
)
def test_orders_that_cannot_be(bad):
    with pytest.raises(UsageError):
        Order(**bad)
