"""Medians and steady rates: few lines, said once.

A mean over a run is pulled by its few slow steps (tracing, a page fault, a
neighbour on the machine); the median step says what a step usually takes. The
rate is a quotient of sums, since waiting is part of what a run costs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfmulti.measure.records import EpochRecord


def median(values: Sequence[float]) -> float | None:
    """Gives the middle value, or the mean of the middle two; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


def steady_rate(epochs: Sequence[EpochRecord]) -> float | None:
    """Gives a run's examples per second, without its first step's compile.

    The first epoch, which also warms caches, counts only where it is alone.
    """
    counted = _steady(epochs)
    seconds = sum(e.timed_s for e in counted)
    examples = sum(e.timed_examples for e in counted)
    return examples / seconds if seconds and examples else None


def steady_step_ms(epochs: Sequence[EpochRecord]) -> float | None:
    """Gives the median over epochs of the epochs' median step."""
    times = [e.step_ms for e in _steady(epochs) if e.step_ms is not None]
    return median(times)


def _steady(epochs: Sequence[EpochRecord]) -> Sequence[EpochRecord]:
    return epochs[1:] if len(epochs) > 1 else epochs
