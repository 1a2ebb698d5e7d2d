"""The records of a run: one for each epoch, one for the whole.

    EpochRecord  one line of metrics.jsonl
    RunSummary   summary.json, and what the closing summary on screen says

How speed is measured. The first step of a run traces and compiles, which may
take longer than the rest of its epoch. So the clock of the first epoch starts
when its first step has ended and counts the steps behind it; later epochs
count every step, from the start of the epoch (waiting for data included) to
the end of its last step. Validation and saving are never counted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """What one epoch gave.

    Attributes:
        epoch: Its number, from 1.
        step: Optimizer steps done since the start of the run.
        metrics: Keras's logs at the end of the epoch ("loss", "val_loss").
        timed_steps: Steps that the clock counted (see the module).
        timed_examples: Examples in those steps, over all replicas.
        timed_s: Seconds that those steps took.
        step_ms: Median time of one of those steps; None if none was timed.
        time_s: Seconds since training began, at the end of this epoch.
    """

    epoch: int
    step: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    timed_steps: int
    timed_examples: int
    timed_s: float
    step_ms: float | None
    time_s: float

    def __post_init__(self) -> None:
        assert self.epoch >= 1 and self.step >= 1
        assert self.timed_steps >= 0 and self.timed_s >= 0

    @property
    def examples_per_s(self) -> float | None:
        """Training speed of the timed steps; None if none was timed."""
        if not self.timed_steps or not self.timed_s:
            return None
        return self.timed_examples / self.timed_s

    def to_json(self) -> dict[str, Any]:
        """Gives plain JSON values; a NaN or infinity becomes its name."""
        document = dataclasses.asdict(self)
        document["metrics"] = {
            name: number_to_json(value) for name, value in self.metrics.items()
        }
        return document | {"examples_per_s": self.examples_per_s}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> EpochRecord:
        """Reads back what `to_json` gave."""
        values = {k: v for k, v in document.items() if k != "examples_per_s"}
        values["metrics"] = {
            name: float(value) for name, value in values["metrics"].items()
        }
        return EpochRecord(**values)


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """What a whole run gave.

    Attributes:
        experiment: Name of the experiment.
        strategy: "one", "mirrored" or "multiworker".
        workers: Processes.
        replicas: Copies of the model, over all workers.
        device: "CPU" or "GPU".
        precision: Keras dtype policy.
        parameters: Numbers in the model that training may change, and state.
        epochs: Epochs done.
        steps: Optimizer steps done.
        examples_per_s: Training speed, see the module; None if not timed.
        step_ms: Median time of a step; None if not timed.
        metrics: Final metrics in the task's own terms.
        wall_s: Seconds from the start of the worker to the end.
        weights_sha256: Checksum over the bytes of all weights, 16 hex digits.
        run_dir: Folder of everything that the run left.
        files: What is where: "model" -> "model.keras", inside run_dir.
    """

    experiment: str
    strategy: str
    workers: int
    replicas: int
    device: str
    precision: str
    parameters: int
    epochs: int
    steps: int
    examples_per_s: float | None
    step_ms: float | None
    metrics: Mapping[str, float]
    wall_s: float
    weights_sha256: str
    run_dir: str
    files: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Gives plain JSON values."""
        metrics = {k: number_to_json(v) for k, v in self.metrics.items()}
        return dataclasses.asdict(self) | {"metrics": metrics}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> RunSummary:
        """Reads back what `to_json` gave."""
        metrics = {k: float(v) for k, v in document["metrics"].items()}
        return RunSummary(**(dict(document) | {"metrics": metrics}))


def number_to_json(value: float) -> float | str:
    """Gives a number as strict JSON allows it: NaN becomes "nan"."""
    return value if math.isfinite(value) else str(value)
