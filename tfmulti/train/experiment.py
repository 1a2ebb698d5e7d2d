"""One run of an experiment: data, model, fit, and what is left behind.

    seed, precision
    data ------------> feed, facts
    facts, config ---> model, compiled      in the strategy's scope
    fit                                     every worker, in step
    weights equal?                          every worker, one collective
    model, samples, curves, summary         the chief; the others wait
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import keras
import tensorflow as tf

from tfmulti.config import Experiment
from tfmulti.data import DataSplits, parse
from tfmulti.launch.job import Job
from tfmulti.measure import METRICS
from tfmulti.train.checksum import check_weights_equal, weights_sha256
from tfmulti.train.classification import Classification
from tfmulti.train.factories import load_factory, make_config
from tfmulti.train.feed import Feed, load_splits, make_feed
from tfmulti.train.gan import Gan
from tfmulti.train.language_model import LanguageModel
from tfmulti.train.leavings import leave_results
from tfmulti.train.recorder import EpochRecorder
from tfmulti.train.run_dir import open_run_dir
from tfmulti.train.task import Task

TASKS: Mapping[str, type[Task]] = {
    "classification": Classification,
    "language_model": LanguageModel,
    "gan": Gan,
}

# Kinds of data whose argument is a path.
FILE_KINDS = ("text", "images", "tfrecord", "array_record")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where this process stands in the job.

    Attributes:
        job: The job.
        strategy: The strategy that it trains under.
        chief: Whether it writes what the run leaves and shows its progress.
        start_s: When it started, by `time.monotonic`.
    """

    job: Job
    strategy: tf.distribute.Strategy
    chief: bool
    start_s: float


def run_experiment(place: Place) -> None:
    """Trains the job's experiment and leaves its results.

    Raises:
        UsageError: The experiment, its data or the run folder do not fit.
        TfmultiError: The replicas ended with different weights.
    """
    job, strategy = place.job, place.strategy
    experiment = job.experiment
    assert experiment is not None
    task = TASKS[experiment.task]()
    keras.utils.set_random_seed(experiment.seed)
    keras.config.set_dtype_policy(experiment.precision)
    factory = load_factory(experiment.model)
    splits = load_splits(experiment, factory, job.data_dir)
    feed = make_feed(experiment, splits, strategy, validate=task.validates)
    config = make_config(factory, experiment, facts(experiment, splits))
    if place.chief:
        open_run_dir(job.run_dir, {"job": job.to_json()})
        print(data_line(job, splits), flush=True)
    with strategy.scope():
        model = factory.build(config)
        task.compile(model, experiment, experiment.epochs * feed.steps)
    recorder = _fit(place, experiment, task, model, feed)
    check_weights_equal(model, strategy)
    digits = weights_sha256(model)
    print(f"weights sha256 {digits}", flush=True)
    if place.chief:
        leave_results(
            job,
            task,
            model,
            splits,
            epochs=recorder.records,
            weights_sha256=digits,
            start_s=place.start_s,
        )
    wait_for_all(strategy)


def data_line(job: Job, splits: DataSplits) -> str:
    """Says what is trained on: kind, number and place of the examples."""
    assert job.experiment is not None
    spec = parse(job.experiment.data)
    parts = [
        splits.info.description,
        f"{len(splits.train)} training examples",
    ]
    if spec.kind in FILE_KINDS:
        # An absolute argument stays as it is.
        parts.append(str(Path(job.data_dir or ".", spec.argument).absolute()))
    return f"data: {', '.join(parts)}"


def facts(experiment: Experiment, splits: DataSplits) -> dict[str, object]:
    """Gives what the data say of themselves, named as models name it.

    A GAN is given images without their classes.
    """
    info = splits.info
    is_gan = experiment.task == "gan"
    return {
        "image_shape": info.image_shape,
        "pixel_range": info.pixel_range,
        "num_classes": None if is_gan else info.num_classes,
        "vocabulary_size": info.vocabulary_size,
        "context_length": info.context,
    }


def wait_for_all(strategy: tf.distribute.Strategy) -> None:
    """Returns when every worker has come here.

    A worker that leaves early looks like one that died: TensorFlow then ends
    the others while the chief still writes.
    """
    ones = strategy.run(lambda: tf.ones(()))
    strategy.reduce(tf.distribute.ReduceOp.SUM, ones, axis=None).numpy()


def _fit(
    place: Place,
    experiment: Experiment,
    task: Task,
    model: keras.Model,
    feed: Feed,
) -> EpochRecorder:
    bar = place.chief and sys.stdout.isatty()
    lines = place.chief and not bar
    recorder = EpochRecorder(
        steps=feed.steps,
        examples=feed.examples,
        epochs=experiment.epochs,
        terms=task.terms,
        path=Path(place.job.run_dir, METRICS) if place.chief else None,
        show=(lambda line: print(line, flush=True)) if lines else None,
    )
    model.fit(
        feed.train,
        epochs=experiment.epochs,
        steps_per_epoch=feed.steps,
        validation_data=feed.validation,
        validation_steps=feed.validation_steps,
        callbacks=[recorder],
        verbose=1 if bar else 0,
        shuffle=False,  # the feed has its order
    )
    return recorder
