"""Counts of rows: equal to what is counted one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tfmulti.data.counts import Counts, count_rows
from tfmulti.data.order import ENDS, Order


def _one_by_one(order, start, stop, bad):
    seen = skipped = padded = dropped = 0
    for step in range(start, stop):
        rows = zip(order.indices(step), order.weights(step), strict=True)
        for example, weight in rows:
            padded += weight == 0
            skipped += weight > 0 and example in bad
            seen += weight > 0 and example not in bad
        if (step + 1) % order.steps_per_epoch == 0:
            dropped += order.dropped_per_epoch
    return Counts(seen=seen, skipped=skipped, padded=padded, dropped=dropped)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("batch", [1, 5, 6, 23])
def test_counts_between_any_two_steps(end, batch):
    order = Order(example_count=23, global_batch_size=batch, end=end)
    steps = np.unique(np.linspace(0, 3 * order.steps_per_epoch, 9, dtype=int))
    for start in steps.tolist():
        for stop in steps[steps >= start].tolist():
            got = count_rows(order, start, stop, {3, 22})
            assert got == _one_by_one(order, start, stop, {3, 22})


def test_a_long_run_is_counted_at_once():
    order = Order(example_count=10**9 + 1, global_batch_size=1000, end="drop")
    counts = count_rows(order, 0, 3 * 10**6)
    assert counts == Counts(seen=3 * 10**9, skipped=0, padded=0, dropped=3)
