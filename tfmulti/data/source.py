"""What a store of examples must offer: any examples, at once, by number.

A source knows how many examples it holds and gives those that are asked for
as one batch. It has no order, no position and no state, so that any worker
may ask it for anything; `order` says what to ask for and `delivery` asks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import tensorflow as tf


class Source(Protocol):
    """Random access to examples.

    Attributes:
        element_spec: Structure of `tf.TensorSpec` of ONE example: a single
            spec, or a tuple (input, target).
        fingerprint: Tells this data set from others; equal on every machine
            that holds the same examples in the same numbering.
    """

    @property
    def element_spec(self) -> Any: ...

    @property
    def fingerprint(self) -> str: ...

    def __len__(self) -> int: ...

    def fetch(self, indices: tf.Tensor) -> Any:
        """Gives the examples with these numbers as one batch.

        Called while the function of a `tf.data` map is traced.

        Args:
            indices: int64 [rows], each in [0, len(self)); rows may be 0.

        Returns:
            Tensors in the structure of `element_spec`, with rows in front.
        """
        ...


@runtime_checkable
class MarkingSource(Source, Protocol):
    """A source whose examples may be damaged, each by itself."""

    def fetch_marked(self, indices: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """Gives examples as `fetch` does, zeros for those that are damaged.

        Returns:
            The examples, and bool [rows]: whether each is whole.
        """
        ...

    def names(self, indices: tf.Tensor) -> tf.Tensor:
        """Names examples by file and place: string [rows]."""
        ...


def fetch_marked(source: Source, indices: tf.Tensor) -> tuple[Any, tf.Tensor]:
    """Asks any source as `MarkingSource.fetch_marked` says.

    An example of a source that cannot mark is whole, or an error.
    """
    if isinstance(source, MarkingSource):
        return source.fetch_marked(indices)
    return source.fetch(indices), tf.ones_like(indices, tf.bool)


def names_of(source: Source, indices: tf.Tensor) -> tf.Tensor:
    """Names examples as the source does, or by their numbers."""
    if isinstance(source, MarkingSource):
        return source.names(indices)
    return tf.strings.join(["example ", tf.as_string(indices)])


def cpu_constant(values: Any, dtype: Any = None) -> tf.Tensor:
    """Makes a tensor that stays in the host's memory.

    Under a strategy's scope a constant would go to the first GPU, where a
    `tf.data` function cannot use it.
    """
    with tf.device("CPU:0"):
        return tf.constant(values, dtype)


def digest(parts: Iterable[str | bytes]) -> str:
    """Gives 16 hexadecimal digits that stand for a sequence of parts."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        # The length in front keeps ("ab", "c") from ("a", "bc").
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()[:16]


def array_digest(array: np.ndarray, sampled_rows: int = 1024) -> str:
    """Gives a digest of an array from its shape and evenly spread rows."""
    step = max(1, len(array) // sampled_rows)
    rows = np.ascontiguousarray(array[::step])
    return digest([str(array.dtype), str(array.shape), rows.tobytes()])
