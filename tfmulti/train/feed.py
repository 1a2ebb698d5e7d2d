"""What `fit` is fed: batches of training and of held-out examples.

Training reads an endless stream in which one epoch's order follows the other,
and counts its steps: no replica ever has to ask whether there is more. Every
example comes once in each epoch; where the batch does not divide them, the
last batch is a short one.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import tensorflow as tf

from tfmulti.config import Experiment
from tfmulti.data import (
    DataSplits,
    Order,
    Position,
    Source,
    distributed,
    load,
    parse,
    steps_per_epoch,
)

# Fields of a model's configuration that say what its examples look like, and
# what `load` calls them.
HINTS = {
    "image_shape": "image_shape",
    "num_classes": "num_classes",
    "vocabulary_size": "vocabulary_size",
    "context_length": "context",
}


@dataclass(frozen=True, kw_only=True)
class Feed:
    """Data and counts for one `fit`.

    Attributes:
        train: Endless batches of training examples.
        begin: Where the training examples begin.
        steps: Steps in an epoch.
        examples: Examples in an epoch.
        validation: Endless batches of held-out examples; None for none.
        validation_steps: Steps in one pass over them.
    """

    train: Any
    begin: Position
    steps: int
    examples: int
    validation: Any = None
    validation_steps: int | None = None

    def position(self, global_step: int) -> Position:
        """Gives the place to save after so many steps of the whole run."""
        return dataclasses.replace(self.begin, global_step=global_step)


class Spread:
    """A source of some of another source's examples, evenly spread over it.

    The first ones alone would be of one class in data that are sorted.

    Args:
        source: The source to take from.
        count: How many, at most all.
    """

    def __init__(self, source: Source, count: int):
        self._source = source
        self._count = min(count, len(source))

    @property
    def element_spec(self) -> Any:
        """As the source's."""
        return self._source.element_spec

    @property
    def fingerprint(self) -> str:
        """Differs from the source's, since the examples do."""
        return f"{self._source.fingerprint}/{self._count}"

    def __len__(self) -> int:
        return self._count

    def fetch(self, indices: tf.Tensor) -> Any:
        """Gives the chosen examples with these numbers, int64 [rows]."""
        return self._source.fetch(
            indices * len(self._source) // self._count
        )


def load_splits(
    experiment: Experiment, factory: ModuleType, data_dir: str | None
) -> DataSplits:
    """Loads an experiment's examples, in the form that its model wants.

    Args:
        experiment: Says which data.
        factory: The model's factory, whose defaults made-up data follow.
        data_dir: The folder that relative paths count from.

    Raises:
        UsageError: The data are not there, or not of that form.
    """
    form = dict(experiment.model_config)
    if parse(experiment.data).kind == "synthetic":
        # Real data have a form of their own; these take the model's.
        defaults = dataclasses.fields(factory.Config)
        form = {f.name: f.default for f in defaults} | form
    wanted = {HINTS[name]: form[name] for name in HINTS if name in form}
    return load(
        experiment.data,
        data_dir,
        task=experiment.task,
        seed=experiment.seed,
        **wanted,
    )


def make_feed(
    experiment: Experiment,
    splits: DataSplits,
    strategy: tf.distribute.Strategy,
    *,
    validate: bool,
    saved: Position | None = None,
) -> Feed:
    """Makes the batches that each replica of a strategy reads.

    Args:
        experiment: Says batch, seed and steps.
        splits: The examples.
        strategy: Whose replicas read.
        validate: Whether held-out examples are wanted.
        saved: Where an earlier run stopped; None: begin at the beginning.

    Raises:
        UsageError: There is not one batch of examples, or the earlier run
            read other data or another order.
    """
    batch = experiment.global_batch_size
    train = splits.train
    whole = steps_per_epoch(len(train), batch)
    steps = experiment.steps_per_epoch or whole
    examples = len(train) if steps == whole else steps * batch
    begin = _begin(experiment, train, saved)
    stream = distributed(
        train,
        strategy,
        global_batch_size=batch,
        seed=experiment.seed,
        epochs=None,
        start_step=begin.global_step,
    )
    feed = Feed(train=stream, begin=begin, steps=steps, examples=examples)
    if not validate or splits.validation is None:
        return feed
    held = Spread(
        splits.validation,
        experiment.validation_examples or len(splits.validation),
    )
    return dataclasses.replace(
        feed,
        validation=distributed(
            held,
            strategy,
            global_batch_size=batch,
            shuffle=False,
            epochs=None,
        ),
        validation_steps=steps_per_epoch(len(held), batch),
    )


def _begin(
    experiment: Experiment, source: Source, saved: Position | None
) -> Position:
    order = Order(
        example_count=len(source),
        global_batch_size=experiment.global_batch_size,
        seed=experiment.seed,
    )
    step = saved.step_in(source.fingerprint, order) if saved else 0
    return Position(
        global_step=step, source=source.fingerprint, order=order
    )
