"""Examples that lie in memory: NumPy arrays with one row an example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfmulti.data.source import array_digest, cpu_constant, digest
from tfmulti.errors import UsageError


class ArraySource:
    """A source over arrays of equal length.

    Args:
        arrays: One array, or a tuple such as (inputs, targets).
        transform: Applied to a whole batch of each fetch, for example to
            turn stored bytes into floats; it gets the arrays' structure
            unpacked and must keep the rows. Must not draw random numbers.

    Raises:
        UsageError: The arrays differ in length or are empty.
    """

    def __init__(
        self,
        arrays: np.ndarray | tuple[np.ndarray, ...],
        transform: Callable[..., Any] | None = None,
    ):
        parts = arrays if isinstance(arrays, tuple) else (arrays,)
        lengths = sorted({len(part) for part in parts})
        if len(lengths) != 1 or not lengths[0]:
            raise UsageError(
                received=f"arrays of {lengths} rows",
                allowed="arrays with the same number of rows, at least one",
                remedy="Give as many targets as inputs.",
            )
        self._length = lengths[0]
        self._parts = tuple(cpu_constant(part) for part in parts)
        self._transform = transform or (lambda *p: p if len(p) > 1 else p[0])
        self.fingerprint = digest(array_digest(np.asarray(p)) for p in parts)
        self.element_spec = _spec_of_rows(
            self.fetch, tf.TensorSpec([None], tf.int64)
        )

    def __len__(self) -> int:
        return self._length

    def fetch(self, indices: tf.Tensor) -> Any:
        """Gives the rows with these numbers."""
        rows = (tf.gather(part, indices) for part in self._parts)
        return self._transform(*rows)


def _spec_of_rows(fetch: Callable[..., Any], indices: tf.TensorSpec) -> Any:
    """Gives the spec of one example of what `fetch` returns."""
    outputs = tf.function(fetch).get_concrete_function(indices)
    return tf.nest.map_structure(
        lambda t: tf.TensorSpec(t.shape[1:], t.dtype),
        outputs.structured_outputs,
    )
