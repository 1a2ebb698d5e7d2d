"""Text as a language model reads it: fixed windows of a stream of bytes.

Files are laid end to end. With a context of T, window i covers the bytes
[i * T, i * T + T]: input and target are its first and its last T bytes, so
that every byte of the stream but the first is predicted once an epoch.

    bytes    t h e   c a t   s a t          T = 4
    window 0 |t h e _ c|
    window 1         |c a t _ s|

A small corpus is copied to memory once and cut in the graph. A large one is
memory-mapped: only the pages of the windows that are asked for are read, and
the page cache is shared by all workers of a host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import tensorflow as tf
from numpy.lib.stride_tricks import sliding_window_view

from tfmulti.data.source import cpu_constant, digest
from tfmulti.errors import UsageError

IN_MEMORY_BYTES = 256 * 1024**2


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A part of some files laid end to end.

    Attributes:
        paths: The files, none of them empty, in this order.
        start: First byte of the part.
        stop: One past its last byte.
    """

    paths: tuple[Path, ...]
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def stream_of(paths: Sequence[Path]) -> Stream:
    """Gives the whole stream of some files; empty files are left out."""
    sizes = {path: path.stat().st_size for path in paths}
    kept = tuple(path for path in paths if sizes[path])
    return Stream(paths=kept, start=0, stop=sum(sizes.values()))


def split_tail(
    stream: Stream, fraction: float, at_files: bool
) -> tuple[Stream, Stream]:
    """Splits the end of a stream off, to be held out.

    Args:
        stream: What to split.
        fraction: Share of the bytes to hold out.
        at_files: Whether to split where a file begins, at the first such
            place in the tail; only if there is one.
    """
    cut = stream.stop - max(1, int(len(stream) * fraction))
    starts = np.cumsum([0] + [p.stat().st_size for p in stream.paths])
    inside = starts[(starts >= cut) & (starts < stream.stop)]
    if at_files and len(inside):
        cut = int(inside[0])
    head = Stream(paths=stream.paths, start=stream.start, stop=cut)
    tail = Stream(paths=stream.paths, start=cut, stop=stream.stop)
    return head, tail


class Bytes(Protocol):
    """A stream that gives windows of itself in a graph."""

    fingerprint: str

    def __len__(self) -> int: ...

    def windows(self, starts: tf.Tensor, length: int) -> tf.Tensor:
        """Gives uint8 [rows, length], each row from its start on."""
        ...


class WindowSource:
    """A source over the windows of a stream.

    Args:
        stream: The bytes.
        context: Bytes in a window's input, and in its target.

    Raises:
        UsageError: The stream is shorter than one window.
    """

    def __init__(self, stream: Bytes, context: int):
        self._length = (len(stream) - 1) // context
        if self._length < 1:
            raise UsageError(
                received=f"{len(stream)} bytes of text for a context of "
                f"{context}",
                allowed=f"at least {context + 1} bytes",
                remedy="Give more text or a shorter context.",
            )
        self._stream = stream
        self._context = context
        tokens = tf.TensorSpec([context], tf.int32)
        self.element_spec = (tokens, tokens)
        self.fingerprint = digest([stream.fingerprint, str(context)])

    def __len__(self) -> int:
        return self._length

    def fetch(self, indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Gives input and target, int32 [rows, context] with bytes in them."""
        starts = indices * self._context
        windows = self._stream.windows(starts, self._context + 1)
        tokens = tf.cast(windows, tf.int32)
        return tokens[:, :-1], tokens[:, 1:]


def open_stream(
    stream: Stream, in_memory_bytes: int = IN_MEMORY_BYTES
) -> Bytes:
    """Opens a stream in the way that suits its size.

    Args:
        stream: The bytes.
        in_memory_bytes: Largest stream that is copied to memory.
    """
    mapped = MappedBytes(stream)
    if len(stream) > in_memory_bytes:
        return mapped
    return MemoryBytes(mapped.everything(), mapped.fingerprint)


class MemoryBytes:
    """A stream in a tensor.

    Args:
        data: uint8 [size].
        fingerprint: Stands for the content; None: made from it.
    """

    def __init__(self, data: np.ndarray, fingerprint: str | None = None):
        self.fingerprint = fingerprint or digest([data.tobytes()])
        self._size = len(data)
        self._data = cpu_constant(data)

    def __len__(self) -> int:
        return self._size

    def windows(self, starts: tf.Tensor, length: int) -> tf.Tensor:
        """Gives uint8 [rows, length], each row from its start on."""
        columns = tf.range(length, dtype=tf.int64)
        return tf.gather(self._data, starts[:, None] + columns)


class MappedBytes:
    """A stream in the memory maps of its files."""

    def __init__(self, stream: Stream):
        self._start = stream.start
        self._size = len(stream)
        self._maps = [np.memmap(p, np.uint8, "r") for p in stream.paths]
        self._starts = np.cumsum([0] + [len(m) for m in self._maps])
        files = zip(stream.paths, self._maps, strict=True)
        self.fingerprint = digest(
            [
                f"{stream.start} {stream.stop}",
                *(f"{path.name} {len(data)}" for path, data in files),
            ]
        )

    def __len__(self) -> int:
        return self._size

    def everything(self) -> np.ndarray:
        """Copies the whole stream to memory."""
        return self._copy(0, self._size)

    def windows(self, starts: tf.Tensor, length: int) -> tf.Tensor:
        """Gives uint8 [rows, length], each row from its start on."""

        def copy(begin: np.ndarray) -> np.ndarray:
            return self._windows(begin, length)

        windows = tf.numpy_function(copy, [starts], tf.uint8, stateful=False)
        return tf.ensure_shape(windows, [starts.shape[0], length])

    def _windows(self, begin: np.ndarray, length: int) -> np.ndarray:
        rows = np.empty((len(begin), length), np.uint8)
        places = begin + self._start
        files = np.searchsorted(self._starts, places, "right") - 1
        inside = places + length <= self._starts[files + 1]
        for file in np.unique(files[inside]):
            mine = inside & (files == file)
            every = sliding_window_view(self._maps[file], length)
            rows[mine] = every[places[mine] - self._starts[file]]
        for row in np.flatnonzero(~inside):
            rows[row] = self._copy(int(begin[row]), length)
        return rows

    def _copy(self, start: int, length: int) -> np.ndarray:
        """Copies bytes that may lie in several files."""
        begin = self._start + start
        file = int(np.searchsorted(self._starts, begin, "right")) - 1
        parts = []
        while length:
            offset = begin - int(self._starts[file])
            part = self._maps[file][offset : offset + length]
            parts.append(part)
            begin, length = begin + len(part), length - len(part)
            file += 1
        return np.concatenate(parts)
