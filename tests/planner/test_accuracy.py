"""Predictions of what was left out stay within their limits."""

from __future__ import annotations

import statistics

from tests.planner.accuracy import outcomes, quantile
from tfmulti.planner.fit import measurements


def test_left_out_series_are_predicted_within_the_limits() -> None:
    found = outcomes(measurements(), "series")
    points = [
        abs(o.efficiency_error)
        for o in found
        if o.efficiency_error is not None
    ]
    assert len(found) > 1500 and len(points) > 900
    assert statistics.median(points) <= 0.08
    assert quantile(points, 0.9) <= 0.25
    assert statistics.median(abs(o.throughput_error) for o in found) <= 0.35
