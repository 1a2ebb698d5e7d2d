"""Generative adversarial networks: what is learnt is to draw.

The model brings its own `train_step` with two optimizers and can
`generate(count, seed)`. There is no held-out loss that says how good it is, so
the trained model draws: 64 images into a grid, and, where the data have
labels, 1000 for the judge (`tfmulti.train.judge`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from tfmulti.config import Experiment
from tfmulti.data import DataInfo, DataSplits, load
from tfmulti.launch.job import Job
from tfmulti.measure.grid import write_grid
from tfmulti.train.judge import Judge
from tfmulti.train.optimizers import make_optimizer
from tfmulti.train.run_dir import SAMPLE_GRID
from tfmulti.train.task import Shown

# The momentum with which DCGAN training does not oscillate: Radford et al.,
# arXiv:1511.06434, section 4.
BETA_1 = 0.5
GRID_SAMPLES = 64
JUDGED_SAMPLES = 1000
JUDGE_EXAMPLES = 10_000  # real ones that the judge is trained on, at most
SEED = 0


class Gan:
    """See the module and `tfmulti.train.task.Task`."""

    validates = False

    def compile(
        self, model: keras.Model, experiment: Experiment, total_steps: int
    ) -> None:
        """Compiles with an optimizer for each network."""
        settings = {} if experiment.optimizer == "sgd" else {"beta_1": BETA_1}
        model.compile(
            generator_optimizer=make_optimizer(
                experiment, total_steps, **settings
            ),
            discriminator_optimizer=make_optimizer(
                experiment, total_steps, **settings
            ),
        )

    def terms(self, logs: Mapping[str, float]) -> dict[str, float]:
        """Keras's own terms are right."""
        return dict(logs)

    def result(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Gives the losses; what they are worth the judge says."""
        return dict(metrics)

    def show(
        self, model: keras.Model, job: Job, splits: DataSplits
    ) -> Shown:
        """Draws the grid, and has 1000 images judged if there are labels."""
        images = np.asarray(model.generate(JUDGED_SAMPLES, seed=SEED))
        images = _shares_of_white(images, splits.info)
        write_grid(images[:GRID_SAMPLES], Path(job.run_dir, SAMPLE_GRID))
        files = {"samples": SAMPLE_GRID}
        if not splits.info.num_classes:
            return Shown(files=files)
        judge = _judge(job, splits.info)
        verdict = judge(images)
        metrics = {
            "share_sure": verdict.share_sure,
            "count_classes_seen": float(verdict.classes_seen),
            "judge_accuracy": judge.accuracy,
        }
        return Shown(metrics=metrics, files=files)


def _judge(job: Job, info: DataInfo) -> Judge:
    """Trains the judge on the same images, with their labels."""
    assert job.experiment is not None
    labelled = load(
        job.experiment.data,
        job.data_dir,
        task="classification",
        image_shape=info.image_shape,
        num_classes=info.num_classes,
        seed=job.experiment.seed,
    )
    assert labelled.info.num_classes
    count = len(labelled.train)
    chosen = np.random.default_rng(SEED).permutation(count)[:JUDGE_EXAMPLES]
    images, labels = labelled.train.fetch(tf.constant(chosen, tf.int64))
    return Judge(
        _shares_of_white(np.asarray(images), labelled.info),
        np.asarray(labels),
        classes=labelled.info.num_classes,
        seed=SEED,
    )


def _shares_of_white(images: np.ndarray, info: DataInfo) -> np.ndarray:
    """Moves images from the data's range to 0 (black) .. 1 (white)."""
    low, high = info.pixel_range
    return (images - low) / (high - low)
