"""What became of a run's examples: nothing is lost without being counted.

Every worker computes the same figures from the order alone, with no talk
between them and no counter that prefetching could run ahead of. Only which
examples are damaged has to be found by reading. No TensorFlow here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tfmulti.data.order import Order


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The rows of some steps.

    Attributes:
        seen: Examples that were learned from, each as often as it came.
        skipped: Rows whose example is damaged, with weight zero.
        padded: Rows that fill a last batch, with weight zero.
        dropped: Examples that the epochs which ended have left out.
    """

    seen: int
    skipped: int
    padded: int
    dropped: int


def count_rows(
    order: Order, start_step: int, stop_step: int, bad: Collection[int] = ()
) -> Counts:
    """Counts what the steps [start_step, stop_step) of a run have read.

    Args:
        order: The order that they were read in.
        start_step: The first global step.
        stop_step: One past the last.
        bad: Numbers of the examples that are damaged.
    """
    ended = _epochs(order, stop_step) - _epochs(order, start_step)
    padding = _rows_until(order, order.steps_per_epoch)
    padded = ended * max(0, padding - order.example_count)
    rows = _rows_until(order, stop_step) - _rows_until(order, start_step)
    skipped = 0
    if bad:
        skipped = _count_bad(order, range(start_step, stop_step), bad)
    return Counts(
        seen=rows - padded - skipped,
        skipped=skipped,
        padded=padded,
        dropped=ended * order.dropped_per_epoch,
    )


def _epochs(order: Order, step: int) -> int:
    return step // order.steps_per_epoch


def _rows_until(order: Order, step: int) -> int:
    """Counts the rows of all steps before one, padding included."""
    epochs, inside = divmod(step, order.steps_per_epoch)
    whole = order.steps_per_epoch * order.global_batch_size
    if order.end == "short":
        whole = order.example_count
    return epochs * whole + inside * order.global_batch_size


def _count_bad(order: Order, steps: range, bad: Collection[int]) -> int:
    wanted = np.fromiter(bad, np.int64, len(bad))
    found = 0
    for step in steps:
        examples = order.indices(step)[order.weights(step) > 0]
        found += int(np.isin(examples, wanted).sum())
    return found
