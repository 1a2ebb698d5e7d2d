"""Damaged files: each named, with the place in it, and nothing passed over."""

from __future__ import annotations

import os

import numpy as np
import pytest
import tensorflow as tf

from tests.data import stores
from tfmulti import data
from tfmulti.data import record_index
from tfmulti.data.images import ImageSource
from tfmulti.data.record_files import ArrayRecordFiles, TFRecordFiles
from tfmulti.data.records import ImageKeys, ImageRecordSource
from tfmulti.errors import UsageError

pytestmark = pytest.mark.usefixtures("devices")


def _read_all(source):
    return list(data.global_batches(source, global_batch_size=4))


def test_index_is_where_the_writer_wrote(tmp_path):
    path = stores.write_tfrecords(tmp_path, (9,))[0]
    offsets = record_index.index_of(path)
    sizes = [len(r.numpy()) + 16 for r in tf.data.TFRecordDataset([str(path)])]
    np.testing.assert_array_equal(offsets, np.cumsum([0, *sizes])[:-1])


def test_index_is_kept_and_made_anew_when_the_file_changes(tmp_path):
    path = stores.write_tfrecords(tmp_path, (9,))[0]
    kept = record_index.cache_path(path)
    assert not kept.exists()
    first = record_index.index_of(path)
    assert kept.exists() and kept.name.startswith(".")
    np.save(kept, np.append(np.load(kept)[:-1], 7))
    assert record_index.index_of(path)[-1] == 7, "the kept index is used"
    os.utime(path, ns=(1, 1))
    np.testing.assert_array_equal(record_index.index_of(path), first)
    kept.write_bytes(b"damaged")
    np.testing.assert_array_equal(record_index.index_of(path), first)


def test_index_without_a_place_to_keep_it(tmp_path, monkeypatch):
    path = stores.write_tfrecords(tmp_path, (9,))[0]

    def refuse(*args, **kwargs):
        raise PermissionError

    monkeypatch.setattr(record_index.tempfile, "mkstemp", refuse)
    assert len(record_index.index_of(path)) == 9
    assert not record_index.cache_path(path).exists()


@pytest.mark.parametrize("cut", [1, 5, 20, -8])
def test_truncated_tfrecord_is_named_with_its_offset(cut, tmp_path):
    path = stores.write_tfrecords(tmp_path, (9,))[0]
    offsets = record_index.scan(path)
    whole = path.read_bytes()
    # Positive: bytes off the end; negative: only 8 bytes of the last head.
    keep = len(whole) - cut if cut > 0 else offsets[-1] - cut
    path.write_bytes(whole[:keep])
    with pytest.raises(UsageError) as caught:
        TFRecordFiles([path])
    assert str(path) in caught.value.received
    assert f"byte {offsets[-1]}" in caught.value.received


def test_a_wrong_length_is_found_by_its_checksum(tmp_path):
    path = stores.write_tfrecords(tmp_path, (9,))[0]
    offsets = record_index.scan(path)
    content = bytearray(path.read_bytes())
    content[offsets[4] + 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UsageError, match=f"byte {offsets[4]}: .*checksum"):
        record_index.index_of(path)


def test_compressed_tfrecord_says_what_to_do(tmp_path):
    path = tmp_path / "a.tfrecord"
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        writer.write(b"x" * 1000)
    with pytest.raises(UsageError, match="[Dd]ecompress"):
        record_index.index_of(path)


def test_a_text_file_is_no_tfrecord(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"this is text, not records " * 9)
    with pytest.raises(UsageError, match="a.txt"):
        record_index.index_of(path)


def test_a_damaged_record_is_named_when_read(tmp_path):
    path = stores.write_tfrecords(tmp_path, (9,))[0]
    offsets = record_index.index_of(path)
    content = bytearray(path.read_bytes())
    content[offsets[4] + 30] ^= 1
    path.write_bytes(content)
    keys = ImageKeys(image="image/encoded", label="image/class/label")
    source = ImageRecordSource(
        TFRecordFiles([path]), keys, 9, stores.SHAPE, stores.PIXELS
    )
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"{path} at byte {offsets[4]}"
    ):
        _read_all(source)


def test_a_label_out_of_range_is_named(tmp_path):
    path = stores.write_tfrecords(tmp_path, (9,))[0]
    keys = ImageKeys(image="image/encoded", label="image/class/label")
    source = ImageRecordSource(
        TFRecordFiles([path]), keys, 8, stores.SHAPE, stores.PIXELS
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=str(path)):
        _read_all(source)


@pytest.mark.parametrize("damage", ["cut", "text", "gone", "empty"])
def test_an_image_that_does_not_decode_is_named(damage, tmp_path):
    paths = stores.write_images(tmp_path, 9)
    source = ImageSource(paths, None, stores.SHAPE, stores.PIXELS)
    bad = paths[5]
    if damage == "gone":
        bad.unlink()
    else:
        content = {"cut": bad.read_bytes()[:40], "text": b"hello", "empty": b""}
        bad.write_bytes(content[damage])
    with pytest.raises(tf.errors.InvalidArgumentError, match=bad.name):
        _read_all(source)


def test_all_broken_images_of_a_batch_are_named(tmp_path):
    paths = stores.write_images(tmp_path, 4)
    source = ImageSource(paths, None, stores.SHAPE, stores.PIXELS)
    for path in paths:
        path.write_bytes(b"no image")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        _read_all(source)
    for path in paths:
        assert path.name in str(caught.value)


def test_a_file_that_is_no_array_record(tmp_path):
    path = tmp_path / "a.array_record"
    path.write_bytes(b"no records " * 100)
    with pytest.raises(UsageError, match=r"a\.array_record"):
        ArrayRecordFiles([path])
