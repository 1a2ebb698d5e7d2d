"""Classification: an image in, a class out.

Models give logits [batch, classes]; the loss is the mean cross entropy in
nats. With more than `FEW_CLASSES` classes the share of images whose class is
among the first five guesses is told too, as is custom for ImageNet.
"""

from __future__ import annotations

from collections.abc import Mapping

import keras

from tfmulti.config import Experiment
from tfmulti.data import DataSplits
from tfmulti.launch.job import Job
from tfmulti.train.optimizers import make_optimizer
from tfmulti.train.task import Shown

FEW_CLASSES = 20


class Classification:
    """See the module and `tfmulti.train.task.Task`."""

    validates = True

    def compile(
        self, model: keras.Model, experiment: Experiment, total_steps: int
    ) -> None:
        """Compiles with cross entropy and accuracy."""
        metrics: list[keras.metrics.Metric] = [
            keras.metrics.SparseCategoricalAccuracy(name="accuracy")
        ]
        if model.output_shape[-1] > FEW_CLASSES:
            metrics.append(
                keras.metrics.SparseTopKCategoricalAccuracy(
                    k=5, name="top5_accuracy"
                )
            )
        model.compile(
            optimizer=make_optimizer(experiment, total_steps),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=metrics,
        )

    def terms(self, logs: Mapping[str, float]) -> dict[str, float]:
        """Keras's own terms are right."""
        return dict(logs)

    def result(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Gives the held-out metrics; the training ones if none were held."""
        return held_out(metrics)

    def show(
        self, model: keras.Model, job: Job, splits: DataSplits
    ) -> Shown:
        """A classifier has nothing to show but its numbers."""
        return Shown()


def held_out(metrics: Mapping[str, float]) -> dict[str, float]:
    """Gives the held-out metrics without "val_", or else the training ones."""
    validation = {
        name.removeprefix("val_"): value
        for name, value in metrics.items()
        if name.startswith("val_")
    }
    return validation or dict(metrics)
