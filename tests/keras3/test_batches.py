"""Every row of every batch goes to exactly one replica, in order."""

from __future__ import annotations

import numpy as np
import pytest

from tfmulti.keras3 import batches as batches_lib


def _parts(strategy, dataset, count=None, repeatable=False):
    found = []
    for element in batches_lib.Batches(
        strategy, dataset, count=count, repeatable=repeatable
    ):
        found.append(
            [
                _of_replica(element, r)
                for r in range(strategy.num_replicas_in_sync)
            ]
        )
    return found


def _of_replica(element, replica):
    if isinstance(element, dict):
        return {k: _of_replica(v, replica) for k, v in element.items()}
    return element.values[replica]


@pytest.mark.parametrize("rows", range(1, 12))
@pytest.mark.parametrize("known", [True, False])
def test_each_row_once_and_in_order(three, rows, known):
    import tensorflow as tf

    dataset = tf.data.Dataset.range(rows).batch(5)
    count = batches_lib.known_count(dataset) if known else None
    seen = []
    for parts in _parts(three, dataset, count):
        sizes = [int(p["rows"]) for p in parts]
        assert sum(sizes) == int(parts[0]["total"])
        assert max(sizes) - min(sizes) <= 1
        for part, size in zip(parts, sizes, strict=True):
            assert len(part["data"]) == max(size, 1)
            seen += part["data"].numpy().tolist()[:size]
    assert seen == list(range(rows))


def test_static_batches_that_divide_carry_no_counts(three):
    import tensorflow as tf

    dataset = tf.data.Dataset.range(12).batch(6, drop_remainder=True)
    parts = _parts(three, dataset, count=2)
    assert list(parts[0][0]) == ["data"]
    assert [p["data"].numpy().tolist() for p in parts[1]] == [
        [6, 7],
        [8, 9],
        [10, 11],
    ]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_divide_the_replicas(devices, workers):
    import tensorflow as tf

    replicas = 6
    local = replicas // workers
    seen = []
    for worker in range(workers):
        placement = batches_lib.Placement(
            replicas=replicas, first=worker * local, local=local
        )
        parts = batches_lib.split(
            tf.data.Dataset.range(13).batch(13), placement, endless=False
        )
        seen += [v for p in parts for v in p["data"].numpy().tolist()]
    assert seen == list(range(13))


def test_nested_ragged_sparse_and_string_rows(two):
    import tensorflow as tf

    element = {
        "words": np.array([["a"], ["b"], ["c"]]),
        "ragged": tf.ragged.constant([[1], [2, 3], []]),
        "sparse": tf.sparse.from_dense([[1, 0], [0, 2], [0, 0]]),
    }
    dataset = tf.data.Dataset.from_tensors(element)
    (parts,) = _parts(two, dataset)
    first, second = (part["data"] for part in parts)
    assert first["words"].numpy().tolist() == [[b"a"]]
    assert second["words"].numpy().tolist() == [[b"b"], [b"c"]]
    assert second["ragged"].to_list() == [[2, 3], []]
    dense = tf.sparse.to_dense(second["sparse"]).numpy().tolist()
    assert dense == [[0, 2], [0, 0]]


def test_repeated_passes_use_one_iterator_and_shuffle_anew(two):
    import tensorflow as tf

    dataset = tf.data.Dataset.range(64).shuffle(64).batch(64)
    batches = batches_lib.Batches(two, dataset, count=1, repeatable=True)
    orders, iterators = [], set()
    for _ in range(3):
        iterator = iter(batches)
        iterators.add(id(iterator.distributed))
        (element,) = list(iterator)
        order = [v for t in element["data"].values for v in t.numpy()]
        assert sorted(order) == list(range(64))
        orders.append(tuple(order))
    assert len(iterators) == 1
    assert len(set(orders)) == 3


def test_no_batch_dimension_is_an_error_that_says_so(two):
    import tensorflow as tf

    with pytest.raises(ValueError, match="no tensor with a batch dimension"):
        batches_lib.rows_of(tf.constant(1.0))
