"""Passing over damaged examples: weight zero, noted, and counted right."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import tensorflow as tf

from tests.data import stores
from tfmulti import data
from tfmulti.data import record_index
from tfmulti.data.arrays import ArraySource
from tfmulti.data.bad_records import LARGEST_LOG, BadRecords
from tfmulti.data.counts import count_rows
from tfmulti.data.images import ImageSource
from tfmulti.data.order import ENDS, Order
from tfmulti.data.record_files import ArrayRecordFiles, TFRecordFiles
from tfmulti.data.records import ImageKeys, ImageRecordSource
from tfmulti.errors import UsageError

pytestmark = pytest.mark.usefixtures("devices")

COUNT = 9
KEYS = ImageKeys(image="image/encoded", label="image/class/label")


def _flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 255
    path.write_bytes(content)


def _images(folder):
    paths = stores.write_images(folder, COUNT)
    source = ImageSource(
        paths, list(range(COUNT)), stores.SHAPE, stores.PIXELS
    )
    paths[5].write_bytes(b"no image")
    return source, str(paths[5])


def _tfrecords(folder):
    path = stores.write_tfrecords(folder, (COUNT,))[0]
    offset = int(record_index.index_of(path)[5])
    _flip(path, offset + 30)
    return _of(TFRecordFiles([path])), f"{path} at byte {offset}"


def _array_records(folder):
    path = stores.write_array_records(folder, (COUNT,))[0]
    whole = ArrayRecordFiles([path])
    record = stores.example(5)
    place = path.read_bytes().find(record[len(record) // 2 :])
    assert place > 0 and len(whole) == COUNT
    _flip(path, place + 5)
    return _of(ArrayRecordFiles([path])), f"{path}, record 5"


def _of(files):
    return ImageRecordSource(files, KEYS, COUNT, stores.SHAPE, stores.PIXELS)


STORES = {"images": _images, "tfrecords": _tfrecords}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", STORES)
def test_a_damaged_example_has_weight_zero_and_is_counted(
    kind, end, tmp_path
):
    source, name = STORES[kind](tmp_path)
    order = Order(example_count=COUNT, global_batch_size=4, seed=2, end=end)
    bad = BadRecords()
    steps = 2 * order.steps_per_epoch
    read = list(
        data.worker_batches(source, order, epochs=2, bad_records=bad)
    )
    assert len(read) == steps
    weighted = 0
    for step, (images, labels, weights) in enumerate(read):
        examples = order.indices(step)
        wanted = order.weights(step) * (examples != 5)
        np.testing.assert_array_equal(weights, wanted)
        whole = examples != 5
        np.testing.assert_array_equal(labels[whole], examples[whole])
        np.testing.assert_allclose(
            images[:, 0, 0, 0], np.where(whole, examples, 0), atol=1e-4
        )
        weighted += int(weights.numpy().sum())
    assert bad.names == {5: name}
    counts = count_rows(order, 0, steps, bad.names)
    assert counts.seen == weighted
    assert counts.skipped >= (1 if end == "drop" else 2)


def test_a_damaged_array_record_is_named(tmp_path):
    source, name = _array_records(tmp_path)
    bad = BadRecords()
    batches = data.global_batches(
        source, global_batch_size=4, shuffle=False, bad_records=bad
    )
    weights = np.concatenate([batch[2] for batch in batches])
    np.testing.assert_array_equal(weights, np.arange(COUNT) != 5)
    assert bad.names == {5: name}
    with pytest.raises(tf.errors.InvalidArgumentError, match="record 5"):
        list(data.global_batches(source, global_batch_size=4))


def test_a_batch_with_nothing_whole_is_all_zeros(tmp_path):
    paths = stores.write_images(tmp_path, 4)
    source = ImageSource(paths, [0, 1, 2, 3], stores.SHAPE, stores.PIXELS)
    for path in paths:
        path.unlink()
    bad = BadRecords()
    (batch,) = data.global_batches(
        source, global_batch_size=4, bad_records=bad
    )
    assert not batch[0].numpy().any() and not batch[2].numpy().any()
    assert list(bad.names) == [0, 1, 2, 3]


def test_replicas_without_rows_and_sources_that_cannot_be_damaged():
    numbers = np.arange(5)
    source = ArraySource((numbers, numbers))
    order = Order(example_count=5, global_batch_size=4, shuffle=False)
    read = data.worker_batches(
        source,
        order,
        replica_ids=range(4),
        replicas=4,
        bad_records=BadRecords(),
    )
    weights = [batch[2].numpy().tolist() for batch in read]
    assert weights == [[1], [1], [1], [1], [], [], [], [1]]


def test_each_is_told_once_and_a_flood_is_cut(caplog):
    bad = BadRecords()
    many = range(LARGEST_LOG + 5)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            bad.add(list(many), [f"file {i}" for i in many])
    assert len(caplog.records) == LARGEST_LOG
    assert "not listed" in caplog.records[-1].getMessage()
    assert len(bad.names) == LARGEST_LOG + 5


def test_skipping_needs_a_place_for_weights():
    with pytest.raises(UsageError, match="weight zero"):
        data.global_batches(
            ArraySource(np.arange(9)),
            global_batch_size=3,
            bad_records=BadRecords(),
        )
