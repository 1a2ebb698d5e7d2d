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
from tfmulti.data import DataSplits
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
        self, model: keras.Model, splits: DataSplits, folder: Path
    ) -> Shown:
        """Draws the grid, and has 1000 images judged if there are labels."""
        images = np.asarray(model.generate(JUDGED_SAMPLES, seed=SEED))
        write_grid(images[:GRID_SAMPLES], folder / SAMPLE_GRID)
        files = {"samples": SAMPLE_GRID}
        if not splits.info.num_classes:
            return Shown(files=files)
        judge = _judge(splits)
        verdict = judge(images)
        metrics = {
            "share_sure": verdict.share_sure,
            "count_classes_seen": float(verdict.classes_seen),
            "judge_accuracy": judge.accuracy,
        }
        return Shown(metrics=metrics, files=files)


def _judge(splits: DataSplits) -> Judge:
    count = min(len(splits.train), JUDGE_EXAMPLES)
    chosen = np.random.default_rng(SEED).permutation(len(splits.train))
    images, labels = splits.train.fetch(tf.constant(chosen[:count]))
    return Judge(
        np.asarray(images),
        np.asarray(labels),
        classes=splits.info.num_classes,
        seed=SEED,
    )
