"""Record files as random access sees them: TFRecord and ArrayRecord.

Both hold serialised examples. An ArrayRecord file has a table of its records
and a reader of its own; a TFRecord file gets a table from `record_index` and
is then read at an offset by TensorFlow's own reader, which compares the
checksum of every record.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tfmulti.data.record_index import index_of
from tfmulti.data.source import cpu_constant, digest
from tfmulti.errors import UsageError

# Most records fit; a longer one is read in several pieces.
_READ_BYTES = 256 * 1024


class RecordFiles(Protocol):
    """Records of some files, numbered from the first file to the last."""

    fingerprint: str

    def __len__(self) -> int: ...

    def rows(self, numbers: tf.Tensor) -> Any:
        """Gives what `load` needs of each record, with [rows] in front."""
        ...

    def load(self, *row: tf.Tensor) -> tf.Tensor:
        """Reads one record from its part of `rows`: string []."""
        ...

    def names(self, numbers: tf.Tensor) -> tf.Tensor:
        """Names records for an error: string [rows]."""
        ...


class TFRecordFiles:
    """The records of TFRecord files.

    Args:
        paths: The files, in the order that numbers the records.

    Raises:
        UsageError: A file is truncated, compressed or no TFRecord file.
    """

    def __init__(self, paths: Sequence[Path]):
        offsets = [index_of(path) for path in paths]
        counts = [len(part) for part in offsets]
        files = np.repeat(np.arange(len(paths)), counts)
        self._length = sum(counts)
        self._paths = cpu_constant([str(path) for path in paths])
        self._files = cpu_constant(files.astype(np.int32))
        self._offsets = cpu_constant(np.concatenate(offsets))
        self.fingerprint = _fingerprint(paths, counts)

    def __len__(self) -> int:
        return self._length

    def rows(self, numbers: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Gives the path and the offset of each record."""
        paths = tf.gather(self._paths, tf.gather(self._files, numbers))
        return paths, tf.gather(self._offsets, numbers)

    def load(self, *row: tf.Tensor) -> tf.Tensor:
        """Reads the record that begins at an offset of a file."""
        path, offset = row
        # The Python class has no `byte_offsets`; its op has.
        records = tf.raw_ops.TFRecordDatasetV2(
            filenames=path[None],
            compression_type="",
            buffer_size=tf.constant(_READ_BYTES, tf.int64),
            byte_offsets=offset[None],
            metadata="",
        )
        spec = tf.TensorSpec([], tf.string)
        dataset = tf.data.experimental.from_variant(records, spec).take(1)
        return dataset.get_single_element()

    def names(self, numbers: tf.Tensor) -> tf.Tensor:
        """Names records by file and byte offset."""
        paths, offsets = self.rows(numbers)
        return tf.strings.join([paths, tf.as_string(offsets)], " at byte ")


class ArrayRecordFiles:
    """The records of ArrayRecord files.

    Args:
        paths: The files, in the order that numbers the records.

    Raises:
        UsageError: A file is no ArrayRecord file.
    """

    def __init__(self, paths: Sequence[Path]):
        self._names = [str(path) for path in paths]
        self._readers = [_open_array_record(path) for path in paths]
        counts = [reader.num_records() for reader in self._readers]
        self._starts = np.cumsum([0, *counts])
        self.fingerprint = _fingerprint(paths, counts)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def rows(self, numbers: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads the records with these numbers, and says which are whole."""
        records, whole = tf.numpy_function(
            self._read, [numbers], (tf.string, tf.bool), stateful=False
        )
        return (
            tf.ensure_shape(records, numbers.shape),
            tf.ensure_shape(whole, numbers.shape),
        )

    def load(self, *row: tf.Tensor) -> tf.Tensor:
        """Gives the record, which `rows` has read; fails if it is damaged."""
        record, whole = row
        with tf.control_dependencies([tf.debugging.Assert(whole, [whole])]):
            return tf.identity(record)

    def names(self, numbers: tf.Tensor) -> tf.Tensor:
        """Names records by file and number in the file."""

        def name(wanted: np.ndarray) -> np.ndarray:
            files, inside = self._places(wanted)
            places = zip(files, inside, strict=True)
            found = [f"{self._names[f]}, record {i}" for f, i in places]
            return np.array(found, dtype=object)

        return tf.numpy_function(name, [numbers], tf.string, stateful=False)

    def _places(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        files = np.searchsorted(self._starts, numbers, "right") - 1
        return files, numbers - self._starts[files]

    def _read(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        files, inside = self._places(numbers)
        records = np.full(len(numbers), b"", object)
        whole = np.zeros(len(numbers), bool)
        for file in np.unique(files):
            mine = np.flatnonzero(files == file)
            read = _read_some(self._readers[file], inside[mine].tolist())
            for place, record in zip(mine, read, strict=True):
                if record is not None:
                    records[place], whole[place] = record, True
        return records, whole


class Subset:
    """Some of the records of some files.

    Args:
        files: The files.
        kept: Numbers of the records to keep, int64.
    """

    def __init__(self, files: RecordFiles, kept: np.ndarray):
        self._files = files
        self._kept = cpu_constant(kept)
        self._length = len(kept)
        self.fingerprint = digest([files.fingerprint, kept.tobytes()])

    def __len__(self) -> int:
        return self._length

    def rows(self, numbers: tf.Tensor) -> Any:
        """Gives what `load` needs of each record."""
        return self._files.rows(tf.gather(self._kept, numbers))

    def load(self, *row: tf.Tensor) -> tf.Tensor:
        """Reads one record from its part of `rows`."""
        return self._files.load(*row)

    def names(self, numbers: tf.Tensor) -> tf.Tensor:
        """Names records for an error."""
        return self._files.names(tf.gather(self._kept, numbers))


def _read_some(reader: Any, numbers: list[int]) -> list[bytes | None]:
    """Reads records of one file; None for those that are damaged."""
    try:
        return list(reader.read(numbers))
    except (ValueError, RuntimeError, IndexError):
        if len(numbers) == 1:
            return [None]
        return [_read_some(reader, [number])[0] for number in numbers]


def _open_array_record(path: Path) -> Any:
    try:
        from array_record.python import array_record_module
    except ImportError as error:
        raise UsageError(
            received=f"the ArrayRecord file {path}",
            allowed="TFRecord files, where array_record is not installed",
            remedy="Install it: pip install array_record",
        ) from error
    reader = array_record_module.ArrayRecordReader(str(path))
    # The file is opened in the background; the count waits for it.
    if not reader.num_records() and not reader.ok():
        raise UsageError(
            received=f"{path}, which is damaged or no ArrayRecord file",
            allowed="whole ArrayRecord files",
            remedy="Write this file again, or leave it out of the pattern.",
        )
    return reader


def _fingerprint(paths: Sequence[Path], counts: Sequence[int]) -> str:
    sizes = [path.stat().st_size for path in paths]
    files = zip(paths, sizes, counts, strict=True)
    return digest(f"{p.name} {s} {c}" for p, s, c in files)
