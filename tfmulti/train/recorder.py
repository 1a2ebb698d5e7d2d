"""The chief's callback: an epoch ends, a line is written and one is shown.

It looks at the clock when steps begin and reads no step's numbers, so that
it makes no step wait (see `tfmulti.measure.step_clock`). The clock of an epoch
stops when Keras has its metrics, which is when the device has done the work:
where validation starts, or else where the epoch ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import keras

from tfmulti.measure import EpochRecord, append_epoch, epoch_line
from tfmulti.measure.step_clock import EpochTimes, StepClock


class EpochRecorder(keras.callbacks.Callback):
    """Writes and shows a record of each epoch.

    Args:
        steps: Steps in an epoch.
        examples: Examples in an epoch; a short last batch makes them fewer
            than steps x global batch size.
        epochs: Epochs of the run.
        terms: Puts Keras's logs into the task's own terms.
        path: The metrics.jsonl to append to; None writes none.
        show: Shows a line; None shows none (a progress bar does).
        now_s: A monotonic clock, in seconds.
    """

    def __init__(
        self,
        *,
        steps: int,
        examples: int,
        epochs: int,
        terms: Callable[[Mapping[str, float]], dict[str, float]],
        path: Path | None,
        show: Callable[[str], None] | None,
        now_s: Callable[[], float] = time.monotonic,
    ):
        super().__init__()
        self.records: list[EpochRecord] = []
        self._steps = steps
        self._examples = examples
        self._epochs = epochs
        self._terms = terms
        self._path = path
        self._show = show
        self._now_s = now_s
        self._start_s = now_s()
        self._clock = StepClock(now_s)
        self._times: EpochTimes | None = None

    def on_epoch_begin(self, epoch, logs=None):
        """Starts the epoch's clock."""
        self._times = None
        self._clock.start()

    def on_train_batch_begin(self, batch, logs=None):
        """Marks the beginning of a step."""
        self._clock.begin(batch)

    def on_test_begin(self, logs=None):
        """Stops the clock: validation is not counted."""
        self._stop()

    def on_epoch_end(self, epoch, logs=None):
        """Writes the epoch's record and shows its line."""
        times = self._stop()
        metrics = {k: float(v) for k, v in (logs or {}).items()}
        record = EpochRecord(
            epoch=epoch + 1,
            step=(epoch + 1) * self._steps,
            metrics=self._terms(metrics),
            timed_steps=times.steps,
            timed_examples=round(
                self._examples * times.steps / self._steps
            ),
            timed_s=times.duration_s,
            step_ms=times.step_ms,
            time_s=self._now_s() - self._start_s,
        )
        self.records.append(record)
        if self._path:
            append_epoch(self._path, record)
        if self._show:
            self._show(epoch_line(record, self._epochs))

    def _stop(self) -> EpochTimes:
        if self._times is None:
            self._times = self._clock.stop(self._steps)
        return self._times
