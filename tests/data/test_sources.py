"""Every source: the right examples, for any question, in a graph or not."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from sklearn import datasets

from tests.data import stores
from tfmulti.data import digits, python_source
from tfmulti.data.arrays import ArraySource
from tfmulti.data.synthetic import SyntheticImages
from tfmulti.data.windows import (
    MemoryBytes,
    WindowSource,
    open_stream,
    split_tail,
    stream_of,
)
from tfmulti.errors import UsageError

pytestmark = pytest.mark.usefixtures("devices")

KINDS = sorted(stores.SOURCES)


@pytest.mark.parametrize("kind", KINDS)
def test_fetch_gives_what_was_asked_for(kind, tmp_path):
    source = stores.SOURCES[kind](tmp_path)
    assert len(source) == stores.COUNT
    numbers = stores.numbers_of(source)
    for wanted in ([0], [22, 3, 3, 7], list(range(23))):
        batch = source.fetch(tf.constant(wanted, tf.int64))
        assert numbers(batch) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_fetch_in_a_graph_of_unknown_rows_even_none(kind, tmp_path):
    source = stores.SOURCES[kind](tmp_path)
    numbers = stores.numbers_of(source)
    fetch = tf.function(
        source.fetch, input_signature=[tf.TensorSpec([None], tf.int64)]
    )
    assert numbers(fetch(tf.constant([5, 1], tf.int64))) == [5, 1]
    for tensor, spec in zip(
        fetch(tf.constant([], tf.int64)), source.element_spec, strict=True
    ):
        assert tensor.shape == (0, *spec.shape)
        assert tensor.dtype == spec.dtype


@pytest.mark.parametrize("kind", KINDS)
def test_fingerprint_is_of_the_content(kind, tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    first, second = (stores.SOURCES[kind](f) for f in folders)
    assert first.fingerprint == second.fingerprint
    assert len(first.fingerprint) == 16


def test_fingerprints_tell_sources_apart(tmp_path):
    prints = set()
    for kind in KINDS:
        folder = tmp_path / kind
        folder.mkdir()
        prints.add(stores.SOURCES[kind](folder).fingerprint)
    assert len(prints) == len(KINDS) - 1  # text and mapped_text: same bytes


@pytest.mark.parametrize("kind", ["images", "tfrecords", "array_records"])
def test_pixels_are_those_of_the_file(kind, tmp_path):
    source = stores.SOURCES[kind](tmp_path)
    images, labels = source.fetch(tf.range(23, dtype=tf.int64))
    np.testing.assert_array_equal(labels, np.arange(23))
    wanted = np.broadcast_to(np.arange(23.0)[:, None], (23, 16))
    np.testing.assert_allclose(
        images.numpy().reshape(23, 16), wanted, atol=1e-4
    )


def test_windows_cover_the_stream_once(tmp_path):
    source = stores.text(tmp_path)
    inputs, targets = source.fetch(tf.range(23, dtype=tf.int64))
    np.testing.assert_array_equal(
        targets.numpy().ravel(), np.arange(1, 23 * stores.CONTEXT + 1)
    )
    np.testing.assert_array_equal(inputs[:, 1:], targets[:, :-1])


def test_tail_is_split_at_a_byte_or_at_a_file(tmp_path):
    stream = stream_of(stores.write_text(tmp_path))  # 3, 47 and 66 bytes
    head, tail = split_tail(stream, 0.1, at_files=False)
    assert (head.stop, tail.start, tail.stop) == (105, 105, 116)
    head, tail = split_tail(stream, 0.6, at_files=True)
    assert (head.stop, tail.start, tail.stop) == (50, 50, 116)
    source = WindowSource(open_stream(tail), 65)
    np.testing.assert_array_equal(
        source.fetch(tf.constant([0], tf.int64))[0][0], np.arange(50, 115)
    )


def test_too_little_text():
    with pytest.raises(UsageError, match="6 bytes"):
        WindowSource(MemoryBytes(np.zeros(5, np.uint8)), 5)


def test_arrays_must_agree():
    with pytest.raises(UsageError, match="rows"):
        ArraySource((np.zeros(3), np.zeros(4)))


def test_one_array_gives_single_tensors():
    source = ArraySource(np.arange(4, dtype=np.float32))
    assert source.element_spec == tf.TensorSpec([], tf.float32)
    np.testing.assert_array_equal(
        source.fetch(tf.constant([3, 1], tf.int64)), [3, 1]
    )


def test_digits_are_those_of_scikit_learn():
    known = datasets.load_digits()
    images, labels = digits.read()
    np.testing.assert_array_equal(images, known.images)
    np.testing.assert_array_equal(labels, known.target)


def test_digits_are_split_by_class():
    _, labels = digits.read()
    held_out = digits.is_test(labels)
    assert held_out.sum() == 360 and (~held_out).sum() == 1437
    share = np.bincount(labels[held_out]) / np.bincount(labels)
    assert np.abs(share - 0.2).max() < 1 / 174  # Within one example.


def test_digits_sources():
    train, test = digits.sources((-1.0, 1.0), with_labels=True)
    assert (len(train), len(test)) == (1437, 360)
    images, labels = train.fetch(tf.range(1437, dtype=tf.int64))
    assert images.shape == (1437, 8, 8, 1) and labels.dtype == tf.int32
    assert (images.numpy().min(), images.numpy().max()) == (-1.0, 1.0)
    alone, _ = digits.sources((0.0, 1.0), with_labels=False)
    assert alone.element_spec == tf.TensorSpec((8, 8, 1), tf.float32)


def test_python_source_is_python_and_held_out_by_file():
    train, validation = python_source.sources(256)
    assert len(train) * 256 > 4e6
    assert 0.005 < len(validation) / len(train) < 0.08
    windows, _ = train.fetch(tf.range(200, dtype=tf.int64))
    text = bytes(windows.numpy().astype(np.uint8).ravel())
    assert b"def " in text and b"import " in text
    assert not any("test" in p.parts for p in python_source.files())


def test_synthetic_depends_on_seed_and_number_alone():
    def made(count=9, **others):
        source = SyntheticImages(
            count=count, image_shape=(6, 5, 3), num_classes=4, **others
        )
        return source.fetch(tf.constant([2, 8], tf.int64))

    images, labels = made()
    np.testing.assert_array_equal(labels, [2, 0])
    np.testing.assert_array_equal(images, made()[0])
    np.testing.assert_array_equal(images[1], made(first=6, count=3)[0][0])
    assert (images.numpy() != made(seed=1)[0].numpy()).mean() > 0.9
    assert images.numpy().min() >= 0 and images.numpy().max() <= 1


def test_synthetic_classes_can_be_told_apart():
    source = SyntheticImages(count=400, image_shape=(8, 8, 1), num_classes=4)
    images, labels = source.fetch(tf.range(400, dtype=tf.int64))
    flat, labels = images.numpy().reshape(400, -1), labels.numpy()
    means = np.stack([flat[:200][labels[:200] == c].mean(0) for c in range(4)])
    distance = ((flat[200:, None] - means) ** 2).sum(-1)
    assert (distance.argmin(1) == labels[200:]).mean() > 0.9
