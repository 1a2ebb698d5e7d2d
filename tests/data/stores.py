"""One small source of each kind, each example of which tells its number."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf
from array_record.python import array_record_module

from tfmulti.data.arrays import ArraySource
from tfmulti.data.images import ImageSource
from tfmulti.data.record_files import (
    ArrayRecordFiles,
    RecordFiles,
    Subset,
    TFRecordFiles,
)
from tfmulti.data.records import ImageKeys, ImageRecordSource
from tfmulti.data.source import Source
from tfmulti.data.synthetic import SyntheticImages, SyntheticTokens
from tfmulti.data.windows import (
    MappedBytes,
    WindowSource,
    open_stream,
    stream_of,
)

COUNT = 23
SHAPE = (4, 4, 1)
PIXELS = (0.0, 255.0)
CONTEXT = 5


def grey(number: int) -> bytes:
    """Gives a PNG whose grey level is its number."""
    image = np.full(SHAPE, number, np.uint8)
    return tf.io.encode_png(image).numpy()


def example(number: int) -> bytes:
    """Gives a serialised example of the image `grey(number)`."""
    features = {
        "image/encoded": tf.train.Feature(
            bytes_list=tf.train.BytesList(value=[grey(number)])
        ),
        "image/class/label": tf.train.Feature(
            int64_list=tf.train.Int64List(value=[number])
        ),
    }
    return tf.train.Example(
        features=tf.train.Features(feature=features)
    ).SerializeToString()


def write_records(path: Path, records: list[bytes]) -> None:
    """Writes a TFRecord or, if its name says so, an ArrayRecord file."""
    if "array_record" in path.name:
        writer = array_record_module.ArrayRecordWriter(
            str(path), "group_size:1"
        )
    else:
        writer = tf.io.TFRecordWriter(str(path))
    for record in records:
        writer.write(record)
    writer.close()


def _write_examples(paths: list[Path], sizes: tuple[int, ...]) -> list[Path]:
    first = 0
    for path, size in zip(paths, sizes, strict=True):
        write_records(path, [example(first + i) for i in range(size)])
        first += size
    return paths


def write_tfrecords(folder: Path, sizes: tuple[int, ...]) -> list[Path]:
    """Writes examples numbered through to files of these sizes."""
    names = [f"data-{i:05d}-of-{len(sizes):05d}" for i in range(len(sizes))]
    return _write_examples([folder / name for name in names], sizes)


def write_array_records(folder: Path, sizes: tuple[int, ...]) -> list[Path]:
    """Writes examples numbered through to files of these sizes."""
    names = [f"data.array_record-{i}" for i in range(len(sizes))]
    return _write_examples([folder / name for name in names], sizes)


def write_images(folder: Path, count: int) -> list[Path]:
    """Writes images numbered through, in folders of three classes."""
    paths = []
    for number in range(count):
        path = folder / f"class{number % 3}" / f"{number:03d}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(grey(number))
        paths.append(path)
    return paths


def write_text(folder: Path) -> list[Path]:
    """Writes COUNT windows and one byte, byte i being i, in three files."""
    text = bytes(range(CONTEXT * COUNT + 1))
    cuts = [0, 3, 50, len(text)]
    paths = []
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        paths.append(folder / f"{i}.txt")
        paths[-1].write_bytes(text[start:stop])
    return paths


def arrays(folder: Path) -> Source:
    """Arrays in memory."""
    numbers = np.arange(COUNT)
    return ArraySource((numbers[:, None].astype(np.float32), numbers))


def images(folder: Path) -> Source:
    """Image files."""
    paths = write_images(folder, COUNT)
    return ImageSource(paths, list(range(COUNT)), SHAPE, PIXELS)


def _of_records(files: RecordFiles) -> Source:
    keys = ImageKeys(image="image/encoded", label="image/class/label")
    return ImageRecordSource(files, keys, COUNT + 1, SHAPE, PIXELS)


def tfrecords(folder: Path) -> Source:
    """TFRecord files, one of them empty."""
    paths = write_tfrecords(folder, (10, 0, 1, COUNT - 11))
    return _of_records(TFRecordFiles(paths))


def array_records(folder: Path) -> Source:
    """ArrayRecord files."""
    paths = write_array_records(folder, (10, 1, COUNT - 11))
    return _of_records(ArrayRecordFiles(paths))


def subset(folder: Path) -> Source:
    """The first records of more."""
    files = TFRecordFiles(write_tfrecords(folder, (COUNT + 1,)))
    return _of_records(Subset(files, np.arange(COUNT)))


def text(folder: Path) -> Source:
    """Windows of a stream in memory."""
    return WindowSource(open_stream(stream_of(write_text(folder))), CONTEXT)


def mapped_text(folder: Path) -> Source:
    """Windows of memory-mapped files."""
    return WindowSource(MappedBytes(stream_of(write_text(folder))), CONTEXT)


def synthetic_images(folder: Path) -> Source:
    """Made-up images, a class each, so that the label is the number."""
    return SyntheticImages(count=COUNT, image_shape=SHAPE, num_classes=COUNT)


def synthetic_tokens(folder: Path) -> Source:
    """Made-up tokens."""
    return SyntheticTokens(count=COUNT, context=CONTEXT, vocabulary_size=10**6)


SOURCES: dict[str, Callable[[Path], Source]] = {
    maker.__name__: maker
    for maker in (
        arrays, images, tfrecords, array_records, subset, text, mapped_text,
        synthetic_images, synthetic_tokens,
    )
}


def numbers_of(source: Source) -> Callable[[tuple], list[int]]:
    """Gives a function from a batch to the numbers of its examples."""
    every = source.fetch(tf.range(len(source), dtype=tf.int64))
    known = {
        (x.tobytes(), y.tobytes()): i
        for i, (x, y) in enumerate(
            zip(every[0].numpy(), every[1].numpy(), strict=True)
        )
    }
    assert len(known) == len(source), "examples are not told apart"

    def numbers(batch: tuple) -> list[int]:
        rows = zip(batch[0].numpy(), batch[1].numpy(), strict=True)
        return [known[x.tobytes(), y.tobytes()] for x, y in rows]

    return numbers
