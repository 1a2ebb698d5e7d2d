"""Damaged examples that a run passes over: which they are.

A damaged example keeps its row, filled with zeros and of weight zero: shapes
stay static, the parts of all replicas stay what they are, and the gradient
is that of the examples which are whole. `counts.count_rows` makes the run's
figures from the numbers that are kept here. No TensorFlow here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

LARGEST_LOG = 20


class BadRecords:
    """The damaged examples that this worker has met.

    Filled by the threads that read data, which run ahead of training.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> dict[int, str]:
        """Example number -> file and place in it, by number."""
        with self._lock:
            return dict(sorted(self._names.items()))

    def add(self, numbers: Sequence[int], names: Sequence[str]) -> None:
        """Notes damaged examples; tells of those that are new."""
        for number, name in zip(numbers, names, strict=True):
            with self._lock:
                met = len(self._names)
                is_new = number not in self._names
                self._names[number] = name
            if is_new and met < LARGEST_LOG:
                _tell(name, is_last=met == LARGEST_LOG - 1)


def _tell(name: str, is_last: bool) -> None:
    logging.getLogger(__name__).warning(
        "Passed over, damaged or missing: %s%s",
        name,
        " (more are counted and not listed)" if is_last else "",
    )
