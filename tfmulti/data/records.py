"""Examples kept as `tf.train.Example` in record files.

Two conventions for images are read, each with its keys:

    image/encoded, image/class/label    ImageNet as TFRecord, TF's model garden
    image, label                        TensorFlow Datasets

Text lies under `text`. Which convention a file follows is read from its
first record.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tfmulti.data.each import read_each, read_marked
from tfmulti.data.images import decoder
from tfmulti.data.record_files import RecordFiles
from tfmulti.errors import UsageError

IMAGE_KEYS = ("image/encoded", "image")
LABEL_KEYS = ("image/class/label", "label")
TEXT_KEYS = ("text",)

_SAMPLED_LABELS = 512


@dataclass(frozen=True, kw_only=True)
class ImageKeys:
    """Where an example's image and label are.

    Attributes:
        image: Key of the encoded image.
        label: Key of the label; None where there are no labels.
        first_label: The label of the first class, 0 or 1.
    """

    image: str
    label: str | None
    first_label: int = 0


class ImageRecordSource:
    """A source over the images of record files.

    Args:
        files: The records.
        keys: Where image and label are; without a label key, examples are
            images alone.
        num_classes: A label outside of them is an error.
        image_shape: (height, width, channels) to resize to.
        pixel_range: Values of a black and of a white pixel.
    """

    def __init__(
        self,
        files: RecordFiles,
        keys: ImageKeys,
        num_classes: int | None,
        image_shape: tuple[int, int, int],
        pixel_range: tuple[float, float],
    ):
        self._files = files
        self._keys = keys
        self._num_classes = num_classes
        self._decode = decoder(image_shape, pixel_range)
        self.fingerprint = files.fingerprint
        image = tf.TensorSpec(image_shape, tf.float32)
        self.element_spec: Any = image
        if keys.label:
            self.element_spec = (image, tf.TensorSpec([], tf.int32))

    def __len__(self) -> int:
        return len(self._files)

    def fetch(self, indices: tf.Tensor) -> Any:
        """Reads and decodes the images with these numbers."""
        return read_each(
            self._load,
            self._files.rows(indices),
            self.element_spec,
            lambda broken: self.names(tf.gather(indices, broken)),
        )

    def fetch_marked(self, indices: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """As `fetch`; zeros for records that are damaged."""
        return read_marked(
            self._load, self._files.rows(indices), self.element_spec
        )

    def names(self, indices: tf.Tensor) -> tf.Tensor:
        """Names records by file and place."""
        return self._files.names(indices)

    def _load(self, *row: tf.Tensor) -> Any:
        return self._parse(self._files.load(*row))

    def _parse(self, record: tf.Tensor) -> Any:
        keys = self._keys
        features = {keys.image: tf.io.FixedLenFeature([], tf.string)}
        if keys.label:
            features[keys.label] = tf.io.FixedLenFeature([], tf.int64)
        example = tf.io.parse_single_example(record, features)
        image = self._decode(example[keys.image])
        if not keys.label:
            return image
        label = example[keys.label] - keys.first_label
        in_range = (label >= 0) & (label < (self._num_classes or 2**31))
        named = tf.debugging.Assert(in_range, [label])
        with tf.control_dependencies([named]):
            return image, tf.cast(label, tf.int32)


def read_records(files: RecordFiles, numbers: Sequence[int]) -> list[bytes]:
    """Reads some records now.

    Raises:
        UsageError: One of them is damaged.
    """
    wanted = tf.constant(numbers, tf.int64)

    def read() -> tf.Tensor:
        return read_each(
            files.load,
            files.rows(wanted),
            tf.TensorSpec([], tf.string),
            lambda broken: files.names(tf.gather(wanted, broken)),
        )

    try:
        with tf.device("CPU:0"):
            return list(read().numpy())
    except tf.errors.InvalidArgumentError as error:
        raise UsageError(
            received=f"damaged records: {_assertion(error)}",
            allowed="whole record files",
            remedy="Write these files again, or leave them out.",
        ) from error


def image_keys(
    files: RecordFiles, num_classes: int | None, with_labels: bool
) -> tuple[ImageKeys, int | None]:
    """Finds out where the images and the labels are.

    Args:
        files: The records.
        num_classes: What the model has; None: as many as a sample shows.
        with_labels: Whether labels are wanted.

    Returns:
        The keys, and the number of classes (None without labels).

    Raises:
        UsageError: The first record holds no image, or no label although
            labels are wanted.
    """
    example = _first_example(files)
    image = _key_in(example, IMAGE_KEYS)
    if image is None:
        raise _no_key(example, IMAGE_KEYS)
    if not with_labels:
        return ImageKeys(image=image, label=None), None
    label = _key_in(example, LABEL_KEYS)
    if label is None:
        raise _no_key(example, LABEL_KEYS)
    first, num_classes = _label_range(_sample_labels(files, label), num_classes)
    return ImageKeys(image=image, label=label, first_label=first), num_classes


def _label_range(
    labels: np.ndarray, num_classes: int | None
) -> tuple[int, int]:
    """Gives the label of the first class, and the number of classes.

    ImageNet's records count from 1; whether these do shows where the largest
    label is the number of classes. A label that the sample has missed is an
    error when it is met.
    """
    log = logging.getLogger(__name__)
    if num_classes is None:
        num_classes = int(labels.max()) + 1
        log.warning(
            "%d classes are assumed, from a sample of %d labels.",
            num_classes,
            len(labels),
        )
    if labels.max() > num_classes or (0 in labels and num_classes in labels):
        raise UsageError(
            received=f"labels from {labels.min()} to {labels.max()}",
            allowed=f"{num_classes} classes, as the model has",
            remedy="Give the model more classes.",
        )
    if labels.max() < num_classes:
        return 0, num_classes
    log.warning("Labels count from 1: label 1 is read as class 0.")
    return 1, num_classes


def read_text(files: RecordFiles) -> np.ndarray:
    """Reads the texts of all records as one stream, a newline after each.

    Returns:
        uint8 [bytes].

    Raises:
        UsageError: The first record holds no text, or one is damaged.
    """
    example = _first_example(files)
    key = _key_in(example, TEXT_KEYS)
    if key is None:
        raise _no_key(example, TEXT_KEYS)
    parts = []
    for start in range(0, len(files), 1024):
        numbers = range(start, min(start + 1024, len(files)))
        for record in read_records(files, numbers):
            features = tf.train.Example.FromString(record).features.feature
            parts += [*features[key].bytes_list.value, b"\n"]
    return np.frombuffer(b"".join(parts), np.uint8)


def _first_example(files: RecordFiles) -> tf.train.Example:
    if not len(files):
        raise UsageError(
            received="record files without a record",
            allowed="at least one record",
            remedy="Look whether the files were written in full.",
        )
    return tf.train.Example.FromString(read_records(files, [0])[0])


def _sample_labels(files: RecordFiles, key: str) -> np.ndarray:
    sampled = np.unique(
        np.linspace(0, len(files) - 1, _SAMPLED_LABELS).astype(int)
    )
    return np.array(
        [
            tf.train.Example.FromString(record)
            .features.feature[key]
            .int64_list.value[0]
            for record in read_records(files, sampled.tolist())
        ]
    )


def _key_in(example: tf.train.Example, keys: Sequence[str]) -> str | None:
    present = example.features.feature
    return next((key for key in keys if key in present), None)


def _no_key(example: tf.train.Example, keys: Sequence[str]) -> UsageError:
    return UsageError(
        received=f"records with {sorted(example.features.feature)}",
        allowed=f"tf.train.Example with {' or '.join(keys)}",
        remedy="Write the records with one of these keys.",
    )


def _assertion(error: Exception) -> str:
    """Takes the names out of a failed assertion's message."""
    text = str(error).partition("unknown format:")[2]
    return text.partition("\n")[0].strip(" []\"'") or str(error)
