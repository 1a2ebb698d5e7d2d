"""Record files and TensorFlow Datasets as training data.

Which file belongs to which part is read from its name, as in
`train-00000-of-01024` or `mnist-test.tfrecord-00000-of-00001`; files of a
test part are used where there are none for validation.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfmulti.data.record_files import (
    ArrayRecordFiles,
    RecordFiles,
    Subset,
    TFRecordFiles,
)
from tfmulti.data.records import ImageRecordSource, image_keys, read_text
from tfmulti.data.spec import DataSpec, find_files
from tfmulti.data.splits import (
    BYTE_VALUES,
    DataInfo,
    DataSplits,
    Wishes,
    held_out,
)
from tfmulti.data.tfds_parts import find_parts
from tfmulti.data.windows import MemoryBytes, WindowSource

HELD_OUT_IMAGES = 0.1
HELD_OUT_TEXT = 0.05
DEFAULT_SHAPE = (64, 64, 3)

_VALIDATION = {"validation", "valid", "val", "dev"}
_TEST = {"test", "eval"}


def load_records(
    spec: DataSpec, data_dir: str | None, wishes: Wishes
) -> DataSplits:
    """Opens TFRecord or ArrayRecord files of `tf.train.Example`.

    Raises:
        UsageError: Nothing matches, a file is damaged, or its examples are
            not of the task.
    """
    paths = find_files(spec, data_dir)
    train, validation = split_by_name(paths)
    info = DataInfo(
        description=f"{len(paths)} {spec.kind} files",
        num_classes=wishes.num_classes,
    )
    return _load(spec.kind, train, validation, wishes, info)


def load_tfds(
    spec: DataSpec, data_dir: str | None, wishes: Wishes
) -> DataSplits:
    """Opens a data set that TensorFlow Datasets has prepared.

    Raises:
        UsageError: It is not prepared, damaged, or not of the task.
    """
    parts = find_parts(spec, data_dir)
    info = DataInfo(
        description=f"TensorFlow Datasets {parts.name}",
        licence=parts.licence,
        num_classes=parts.num_classes or wishes.num_classes,
        class_names=parts.class_names,
    )
    return _load(parts.kind, parts.train, parts.validation, wishes, info)


def split_by_name(
    paths: Sequence[Path],
) -> tuple[Sequence[Path], Sequence[Path]]:
    """Divides files into those to train on and those to validate on.

    Returns:
        Both parts; the second is empty if no name tells, and then the first
        holds all files.
    """

    def named(names: set[str]) -> list[Path]:
        return [
            path
            for path in paths
            if names & set(re.split("[^a-z]+", path.name.lower()))
        ]

    validation = named(_VALIDATION) or named(_TEST)
    others = {*named(_VALIDATION), *named(_TEST)}
    train = [path for path in paths if path not in others]
    return (train, validation) if train else (paths, [])


def _load(
    kind: str,
    train: Sequence[Path],
    validation: Sequence[Path],
    wishes: Wishes,
    info: DataInfo,
) -> DataSplits:
    open_files = TFRecordFiles if kind == "tfrecord" else ArrayRecordFiles
    train_files: RecordFiles = open_files(train)
    validation_files: RecordFiles | None = None
    if validation:
        validation_files = open_files(validation)
    if wishes.task == "language_model":
        return _texts(train_files, validation_files, wishes, info)
    return _images(train_files, validation_files, wishes, info)


def _images(
    train: RecordFiles,
    validation: RecordFiles | None,
    wishes: Wishes,
    info: DataInfo,
) -> DataSplits:
    keys, num_classes = image_keys(train, info.num_classes, wishes.with_labels)
    if validation is None and len(train) > 1:
        kept, held = held_out(len(train), HELD_OUT_IMAGES)
        train, validation = Subset(train, kept), Subset(train, held)
    shape = wishes.image_shape or DEFAULT_SHAPE

    def source(files: RecordFiles) -> ImageRecordSource:
        return ImageRecordSource(
            files, keys, num_classes, shape, wishes.pixel_range
        )

    return DataSplits(
        train=source(train),
        validation=source(validation) if validation else None,
        info=dataclasses.replace(
            info,
            num_classes=num_classes,
            image_shape=shape,
            pixel_range=wishes.pixel_range,
        ),
    )


def _texts(
    train: RecordFiles,
    validation: RecordFiles | None,
    wishes: Wishes,
    info: DataInfo,
) -> DataSplits:
    text = read_text(train)
    if validation is None:
        cut = len(text) - int(len(text) * HELD_OUT_TEXT)
        text, held = np.split(text, [cut])
    else:
        held = read_text(validation)
    context = wishes.context_or_default

    def source(part: np.ndarray) -> WindowSource:
        return WindowSource(MemoryBytes(part), context)

    return DataSplits(
        train=source(text),
        validation=source(held) if len(held) > context else None,
        info=dataclasses.replace(
            info, vocabulary_size=BYTE_VALUES, context=context
        ),
    )
