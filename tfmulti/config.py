"""What to train: the experiment record, and how one is found by its name.

An experiment is a frozen record in one small file. It names its model by
entry point and its data by a string, so that the launch side can read it,
change it by flags and print it without starting TensorFlow.

    tfmulti_experiments/digits_cnn.py  --entry point-->  Experiment
    Experiment.model  "convnet"        --entry point-->  tfmulti_models.convnet
    Experiment.data   "digits"         --tfmulti.data-->  a source of examples
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from tfmulti.errors import UsageError

EXPERIMENT_GROUP = "tfmulti.experiments"
DEFAULT_EXPERIMENT = "digits_cnn"

TASKS = ("classification", "language_model", "gan")
PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
OPTIMIZERS = ("adam", "adamw", "sgd")

# The data of an experiment that is run on the person's own.
YOURS = ""

# Counts are multiplied with one another in 64 bits; seeds are numpy's.
LARGEST_COUNT = 2**31 - 1
LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is trained, on what, and for how long.

    Attributes:
        name: Its name on the command line.
        summary: One line that says what a reader will see.
        task: What is learnt, and so which loss, metrics and samples: one of
            `TASKS`.
        model: A name in the entry-point group `tfmulti.models`.
        model_config: Values for the fields of that factory's `Config`.
        data: What `--data` says: "digits", "synthetic", "images:DIR", ...;
            `YOURS` where it must say something.
        epochs: Passes over the training examples.
        global_batch_size: Examples in one step, over all replicas.
        learning_rate: Peak learning rate.
        optimizer: One of `OPTIMIZERS`.
        weight_decay: Decoupled weight decay; only for "adamw".
        warmup_steps: Steps of linear warm-up before a cosine decay to zero
            over the run; None keeps the rate constant.
        global_clipnorm: Largest global norm of the gradient; None: no limit.
        precision: Keras dtype policy, one of `PRECISIONS`.
        seed: Seed of the weights, of the order of the data and of dropout.
        steps_per_epoch: Steps in an epoch; None: all examples once.
        validation_examples: Largest number of held-out examples to evaluate
            after each epoch; None: all of them.
    """

    name: str
    summary: str
    task: str
    model: str
    model_config: Mapping[str, Any] = field(default_factory=dict)
    data: str
    epochs: int
    global_batch_size: int
    learning_rate: float
    optimizer: str = "adam"
    weight_decay: float | None = None
    warmup_steps: int | None = None
    global_clipnorm: float | None = None
    precision: str = "float32"
    seed: int = 0
    steps_per_epoch: int | None = None
    validation_examples: int | None = None

    def __post_init__(self) -> None:
        _one_of("--task", self.task, TASKS)
        _one_of("--precision", self.precision, PRECISIONS)
        _one_of("--optimizer", self.optimizer, OPTIMIZERS)
        for name in ("epochs", "global_batch_size"):
            _whole(f"--{name}", getattr(self, name), 1, LARGEST_COUNT)
        for name in ("steps_per_epoch", "validation_examples"):
            if getattr(self, name) is not None:
                _whole(f"--{name}", getattr(self, name), 1, LARGEST_COUNT)
        if self.warmup_steps is not None:
            _whole("--warmup_steps", self.warmup_steps, 0, LARGEST_COUNT)
        _whole("--seed", self.seed, 0, LARGEST_SEED)
        _above_zero("--learning_rate", self.learning_rate)
        if self.global_clipnorm is not None:
            _above_zero("--global_clipnorm", self.global_clipnorm)
        if self.weight_decay:
            _above_zero("--weight_decay", self.weight_decay)

    def replace(self, **changes: Any) -> Experiment:
        """Gives a copy with the changes whose value is not None."""
        given = {k: v for k, v in changes.items() if v is not None}
        return dataclasses.replace(self, **given)

    def to_json(self) -> dict[str, Any]:
        """Gives the record as plain JSON values."""
        return dataclasses.asdict(self) | {
            "model_config": dict(self.model_config)
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Experiment:
        """Reads back what `to_json` gave."""
        return Experiment(**document)


def experiment_names() -> tuple[str, ...]:
    """Lists every experiment that an installed package offers, sorted."""
    return tuple(sorted(_entry_points()))


def load_experiment(name: str) -> Experiment:
    """Finds an experiment by its name.

    Raises:
        UsageError: No installed package offers an experiment of that name.
    """
    found = _entry_points()
    _one_of("--experiment", name, sorted(found))
    return found[name].load()


def _entry_points() -> dict[str, metadata.EntryPoint]:
    points = metadata.entry_points(group=EXPERIMENT_GROUP)
    return {point.name: point for point in points}


def _one_of(flag: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise UsageError(
            received=f"{flag}={value}",
            allowed=", ".join(allowed),
            remedy=f"Choose one of these for {flag}.",
        )


def _whole(flag: str, value: Any, smallest: int, largest: int) -> None:
    good = isinstance(value, int) and not isinstance(value, bool)
    if not good or not smallest <= value <= largest:
        raise UsageError(
            received=f"{flag}={value}",
            allowed=f"a whole number from {smallest} to {largest}",
            remedy=f"Give such a number for {flag}.",
        )


def _above_zero(flag: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise UsageError(
            received=f"{flag}={value}",
            allowed="a number above 0, and not infinite",
            remedy=f"Give such a number for {flag}, such as 0.001.",
        )
