"""From a spec to sources: parts, facts, and what is refused."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import tensorflow as tf

from tests.data import stores
from tfmulti import data
from tfmulti.data.load_records import split_by_name
from tfmulti.data.splits import held_out
from tfmulti.errors import UsageError

pytestmark = pytest.mark.usefixtures("devices")


def _load(spec, data_dir=None, **wishes):
    """Loads data that have a held-out part; gives it as well."""
    splits = data.load(spec, data_dir, **wishes)
    assert splits.validation is not None
    return splits, splits.validation


def _labels(source):
    return source.fetch(tf.range(len(source), dtype=tf.int64))[1].numpy()


def test_digits_for_each_task():
    splits, validation = _load("digits", task="classification")
    assert (len(splits.train), len(validation)) == (1437, 360)
    assert splits.info.num_classes == 10
    assert splits.info.image_shape == (8, 8, 1)
    assert "CC BY" in splits.info.licence
    gan = data.load("digits", task="gan")
    assert gan.train.element_spec == tf.TensorSpec((8, 8, 1), tf.float32)
    assert gan.info.pixel_range == (-1.0, 1.0)


def test_python_source():
    splits, validation = _load(
        "python_source", task="language_model", context=64
    )
    assert splits.info.vocabulary_size == 256
    assert splits.train.element_spec[0].shape == (64,)
    assert len(validation) > 100


@pytest.mark.parametrize("task", ["classification", "gan", "language_model"])
def test_synthetic_serves_every_task(task):
    splits, validation = _load(
        "synthetic",
        task=task,
        image_shape=(6, 6, 3),
        num_classes=5,
        context=9,
        vocabulary_size=1000,
        seed=1,
    )
    batch = next(iter(data.global_batches(splits.train, global_batch_size=4)))
    if task == "classification":
        assert batch[0].shape == (4, 6, 6, 3)
        assert set(_labels(splits.train)) == set(range(5))
    elif task == "gan":
        assert batch.shape == (4, 6, 6, 3)
        assert batch.numpy().min() < 0
    else:
        assert batch[0].shape == (4, 9) and batch[0].numpy().max() < 1000
    assert len(validation) > 0


def test_text_files(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a" * 1000)
    (tmp_path / "b.txt").write_bytes(b"b" * 1000)
    splits, validation = _load(
        "text:*.txt", str(tmp_path), task="language_model", context=10
    )
    assert len(splits.train) == (1900 - 1) // 10
    assert len(validation) == (100 - 1) // 10


def test_image_folder_with_classes(tmp_path):
    stores.write_images(tmp_path, 30)
    splits, validation = _load(
        f"images:{tmp_path}", task="classification", image_shape=(4, 4, 1)
    )
    assert splits.info.class_names == ("class0", "class1", "class2")
    assert (len(splits.train), len(validation)) == (27, 3)
    images, labels = splits.train.fetch(tf.range(27, dtype=tf.int64))
    numbers = np.rint(images.numpy()[:, 0, 0, 0] * 255).astype(int)
    np.testing.assert_array_equal(labels, numbers % 3)
    held, _ = validation.fetch(tf.range(3, dtype=tf.int64))
    others = np.rint(held.numpy()[:, 0, 0, 0] * 255).astype(int)
    assert sorted([*numbers, *others]) == list(range(30))


def test_image_folder_with_named_parts(tmp_path):
    for part, count in (("train", 9), ("val", 6)):
        (tmp_path / part).mkdir()
        stores.write_images(tmp_path / part, count)
    splits, validation = _load(f"images:{tmp_path}", task="classification")
    assert (len(splits.train), len(validation)) == (9, 6)
    assert splits.info.image_shape == (64, 64, 3)


def test_image_folder_without_classes(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.png").write_bytes(stores.grey(number))
    splits = data.load(f"images:{tmp_path}", task="gan", image_shape=(4, 4, 3))
    assert splits.info.num_classes is None
    assert splits.train.element_spec.shape == (4, 4, 3)
    with pytest.raises(UsageError, match="class"):
        data.load(f"images:{tmp_path}", task="classification")


def test_images_are_cropped_in_the_middle_and_not_distorted(tmp_path):
    wide = np.zeros((8, 24, 1), np.uint8)
    wide[:, 8:16] = 255
    for name in ("a", "b"):
        path = tmp_path / f"{name}.png"
        path.write_bytes(tf.io.encode_png(wide).numpy())
    splits = data.load(f"images:{tmp_path}", task="gan", image_shape=(4, 4, 1))
    image = splits.train.fetch(tf.constant([0], tf.int64)).numpy()
    np.testing.assert_allclose(image, 1.0, atol=1e-5)


@pytest.mark.parametrize("kind", ["tfrecord", "array_record"])
def test_record_files(kind, tmp_path, caplog):
    write = {
        "tfrecord": stores.write_tfrecords,
        "array_record": stores.write_array_records,
    }[kind]
    write(tmp_path, (10, 20))
    splits, validation = _load(
        f"{kind}:data*",
        str(tmp_path),
        task="classification",
        image_shape=(4, 4, 1),
        num_classes=30,
    )
    assert (len(splits.train), len(validation)) == (27, 3)
    both = [*_labels(splits.train), *_labels(validation)]
    assert sorted(both) == list(range(30))
    with caplog.at_level(logging.WARNING):
        guessed = data.load(
            f"{kind}:data*", str(tmp_path), task="classification"
        )
    assert guessed.info.num_classes == 30
    assert "30 classes are assumed" in caplog.text


def test_labels_from_one_are_told(tmp_path, caplog):
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for number in range(1, 10):
            writer.write(stores.example(number))
    with caplog.at_level(logging.WARNING):
        splits, validation = _load(
            f"tfrecord:{tmp_path}/*", task="classification", num_classes=9
        )
    assert "count from 1" in caplog.text
    both = [*_labels(splits.train), *_labels(validation)]
    assert sorted(both) == list(range(9))


def test_too_many_classes_for_the_model(tmp_path):
    stores.write_tfrecords(tmp_path, (9,))
    with pytest.raises(UsageError, match="classes"):
        data.load(
            f"tfrecord:{tmp_path}", task="classification", num_classes=5
        )


def test_text_records(tmp_path):
    path = tmp_path / "train.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(50):
            text = tf.train.Feature(
                bytes_list=tf.train.BytesList(value=[b"%02d " % number * 10])
            )
            features = tf.train.Features(feature={"text": text})
            writer.write(tf.train.Example(features=features).SerializeToString())
    splits = data.load(f"tfrecord:{path}", task="language_model", context=30)
    first = splits.train.fetch(tf.constant([0], tf.int64))[0].numpy()
    assert bytes(first[0].astype(np.uint8)) == b"00 " * 10
    assert splits.info.vocabulary_size == 256


@pytest.mark.parametrize(
    ("spec", "task"),
    [
        ("digits", "language_model"),
        ("python_source", "classification"),
        ("python_source", "gan"),
        ("digits", "regression"),
    ],
)
def test_data_that_are_not_of_the_task(spec, task):
    with pytest.raises(UsageError, match="task"):
        data.load(spec, task=task)


def test_digits_have_one_size():
    with pytest.raises(UsageError, match="8, 8, 1"):
        data.load("digits", task="classification", image_shape=(32, 32, 3))


def test_files_are_divided_by_name(tmp_path):
    def names(*given):
        parts = split_by_name([tmp_path / name for name in given])
        return [[path.name for path in part] for part in parts]

    assert names("train-00000-of-00002", "validation-00000-of-00001") == [
        ["train-00000-of-00002"],
        ["validation-00000-of-00001"],
    ]
    assert names(
        "a-train.tfrecord", "a-test.tfrecord", "a-validation.tfrecord"
    ) == [["a-train.tfrecord"], ["a-validation.tfrecord"]]
    assert names("a.tfrecord", "b.tfrecord") == [
        ["a.tfrecord", "b.tfrecord"],
        [],
    ]
    assert names("test-1", "test-2") == [["test-1", "test-2"], []]


def test_held_out_is_a_fixed_share():
    kept, held = held_out(1000, 0.1)
    assert len(held) == 100
    assert sorted([*kept, *held]) == list(range(1000))
    np.testing.assert_array_equal(held_out(1000, 0.1)[1], held)
    assert len(held_out(2, 0.1)[1]) == 1


def _write_tfds(folder, file_format):
    """Writes 20 and 6 images in the layout of TensorFlow Datasets.

    Its own builder is not used: in 4.9.10 it asks for importlib_resources,
    which it installs for old Pythons only.
    """
    tfds = pytest.importorskip("tensorflow_datasets")
    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(4, 4, 1)),
            "label": tfds.features.ClassLabel(names=["a", "b"]),
        }
    )
    template = tfds.core.ShardedFileTemplate(
        data_dir=folder,
        template="{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
        dataset_name="grey_images",
        filetype_suffix=file_format,
    )
    infos = []
    for split, numbers in (("train", range(20)), ("test", range(20, 26))):
        path = folder / f"grey_images-{split}.{file_format}-00000-of-00001"
        records = [
            features.serialize_example(
                {"image": np.full((4, 4, 1), n, np.uint8), "label": n % 2}
            )
            for n in numbers
        ]
        stores.write_records(path, records)
        info = tfds.core.SplitInfo(
            name=split,
            shard_lengths=[len(records)],
            num_bytes=path.stat().st_size,
            filename_template=template,
        )
        infos.append(info)
    tfds.folder_dataset.write_metadata(
        data_dir=str(folder),
        features=features,
        split_infos=infos,
        filename_template=template,
        check_data=False,
    )


@pytest.mark.parametrize("file_format", ["tfrecord", "array_record"])
def test_tensorflow_datasets(file_format, tmp_path):
    folder = tmp_path / "grey_images" / "1.2.0"
    folder.mkdir(parents=True)
    _write_tfds(folder, file_format)
    splits, validation = _load(
        "tfds:grey_images",
        str(tmp_path),
        task="classification",
        image_shape=(4, 4, 1),
    )
    assert (len(splits.train), len(validation)) == (20, 6)
    assert splits.info.class_names == ("a", "b")
    images, labels = splits.train.fetch(tf.range(20, dtype=tf.int64))
    numbers = np.rint(images.numpy()[:, 0, 0, 0] * 255).astype(int)
    assert sorted(numbers) == list(range(20))
    np.testing.assert_array_equal(labels, numbers % 2)
    with pytest.raises(UsageError, match="9.9.9"):
        data.load(
            "tfds:grey_images:9.9.9", str(tmp_path), task="classification"
        )
