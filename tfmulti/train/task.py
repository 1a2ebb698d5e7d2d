"""What a kind of learning brings to a run: one object for each `task`.

The run (`tfmulti.train.experiment`) is the same for all: data, model, fit,
files. A task adds what differs: loss and metrics, in whose terms the result
is told, and what the trained model can show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import keras

from tfmulti.config import Experiment
from tfmulti.data import DataSplits
from tfmulti.launch.job import Job


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a trained model showed.

    Attributes:
        metrics: Numbers measured on the samples.
        files: What -> file name, for the summary.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


class Task(Protocol):
    """A kind of learning."""

    validates: bool  # whether held-out examples are evaluated in each epoch

    def compile(
        self, model: keras.Model, experiment: Experiment, total_steps: int
    ) -> None:
        """Compiles the model, inside the strategy's scope."""

    def terms(self, logs: Mapping[str, float]) -> dict[str, float]:
        """Puts an epoch's logs into the task's own terms."""

    def result(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Picks, from the last epoch's terms, what says how good it is."""

    def show(
        self, model: keras.Model, job: Job, splits: DataSplits
    ) -> Shown:
        """Lets the trained model show what it can, on one device.

        Files go into the job's run folder.
        """
