"""How long the steps of one epoch took, from the moments when they began.

A step ends where the next begins. Asking at a step's beginning costs nothing;
asking for its end would make Keras wait for each step's numbers, which stalls
an accelerator that could have had the next step queued.

    start      begin(0)     begin(1)     begin(2)              stop(3)
      |--data----|---step 0----|---step 1---|------step 2---------|
    first epoch of a run:      |<- counted from here: step 0 compiles
    later epochs: |<- counted from `start`, so waiting for data is seen
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tfmulti.measure.statistics import median


@dataclass(frozen=True, kw_only=True)
class EpochTimes:
    """The counted part of one epoch.

    Attributes:
        steps: Counted steps.
        duration_s: Seconds that they took, waiting for data included.
        step_ms: Median time from one step's beginning to the next one's.
    """

    steps: int
    duration_s: float
    step_ms: float | None


class StepClock:
    """Watches one epoch after the other.

    Args:
        now_s: A monotonic clock, in seconds.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic):
        self._now_s = now_s
        self._compiled = False
        self._begun: list[tuple[int, float]] = []
        self._start_s = 0.0

    def start(self) -> None:
        """An epoch begins, before its first batch is fetched."""
        self._begun = []
        self._start_s = self._now_s()

    def begin(self, step: int) -> None:
        """The step of this number, from 0 in each epoch, begins now.

        With several steps in one execution the first one's number is given.
        """
        self._begun.append((step, self._now_s()))

    def stop(self, steps: int) -> EpochTimes:
        """The epoch's steps, this many, have all ended now."""
        # Keras may call once more than there are steps, to find the end.
        marks = [mark for mark in self._begun if mark[0] < steps]
        marks.append((steps, self._now_s()))
        if not self._compiled:
            self._compiled = True
            counted = marks[1:]
        else:
            counted = [(0, self._start_s), *marks[1:]]
        first_step, first_s = counted[0]
        last_step, last_s = counted[-1]
        intervals = zip(counted, counted[1:], strict=False)
        times = [1000 * (b[1] - a[1]) / (b[0] - a[0]) for a, b in intervals]
        return EpochTimes(
            steps=last_step - first_step,
            duration_s=last_s - first_s,
            step_ms=median(times),
        )
