"""Every family of Keras's metrics: at the ends of batches and of epochs.

Left out: PearsonCorrelation and ConcordanceCorrelation over the batch (their
default axis) are means of a number per batch, no state that could be summed
(A43).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.equivalence import problems
from tests.equivalence.outcome import BatchLogs, trained
from tests.equivalence.program import Place, Program, program

M = keras.metrics


def _row(
    name: str,
    make: Callable[[], Sequence[Any]],
    target: Callable[[], np.ndarray],
    outputs: int,
    activation: str | None = None,
    *,
    weighted: bool = False,
) -> Program:
    """Gives the program that trains with metrics and reads them always."""

    @program(f"metric/{name}", "A32")
    def run(place: Place) -> dict[str, Any]:
        x, _ = problems.regression(14)
        key = "weighted_metrics" if weighted else "metrics"
        logs = BatchLogs()
        with_logs = trained(
            place,
            lambda: problems.compiled(
                problems.dense(outputs, activation=activation),
                **{key: list(make())},
            ),
            x,
            target(),
            sample_weight=problems.weights(14) if weighted else None,
            callbacks=[logs],
            validation_data=(x[:7], target()[:7]),
            predict=(),
        )
        return with_logs | logs.arrays()

    return run


def _three() -> np.ndarray:
    return problems.regression(14, targets=3)[1]


def _positive() -> np.ndarray:
    return np.abs(_three()) + 0.1


def _shares() -> np.ndarray:
    positive = _positive()
    return positive / positive.sum(axis=1, keepdims=True)


def _labels() -> np.ndarray:
    return problems.classes(14)[1][:, None]


def _hot() -> np.ndarray:
    return problems.one_hot(_labels()[:, 0])


def _zero_one() -> np.ndarray:
    return (_three() > 0).astype("float32")


def _signs() -> np.ndarray:
    return 2 * _zero_one() - 1


def _regression_metrics() -> Sequence[Any]:
    return (
        M.MeanSquaredError(),
        M.RootMeanSquaredError(),
        M.MeanAbsoluteError(),
        M.MeanAbsolutePercentageError(),
        M.MeanSquaredLogarithmicError(),
        M.LogCoshError(),
        M.CosineSimilarity(),
        M.R2Score(),
    )


def _confusion() -> Sequence[Any]:
    return (
        M.TruePositives(),
        M.TrueNegatives(),
        M.FalsePositives(thresholds=[0.3, 0.6]),
        M.FalseNegatives(),
        M.Precision(),
        M.Recall(),
        M.Precision(top_k=2, class_id=1, name="precision_top"),
    )


def _operating_points() -> Sequence[Any]:
    return (
        M.PrecisionAtRecall(0.5, num_thresholds=20),
        M.RecallAtPrecision(0.5, num_thresholds=20),
        M.SensitivityAtSpecificity(0.5, num_thresholds=20),
        M.SpecificityAtSensitivity(0.5, num_thresholds=20),
    )


EVERY = (
    _row("regression", _regression_metrics, _positive, 3, "softplus"),
    _row(
        "regression weighted",
        _regression_metrics,
        _positive,
        3,
        "softplus",
        weighted=True,
    ),
    _row(
        "categorical accuracy",
        lambda: (
            "accuracy",
            M.TopKCategoricalAccuracy(2),
            M.CategoricalAccuracy(name="named"),
        ),
        _hot,
        3,
        "softmax",
    ),
    _row(
        "sparse accuracy",
        lambda: (
            M.SparseCategoricalAccuracy(),
            M.SparseTopKCategoricalAccuracy(2),
        ),
        _labels,
        3,
        "softmax",
    ),
    _row(
        "binary accuracy",
        lambda: (M.BinaryAccuracy(threshold=0.4), M.Accuracy()),
        _zero_one,
        3,
        "sigmoid",
    ),
    _row("confusion", _confusion, _zero_one, 3, "sigmoid"),
    _row(
        "confusion weighted",
        _confusion,
        _zero_one,
        3,
        "sigmoid",
        weighted=True,
    ),
    _row(
        "auc",
        lambda: (
            M.AUC(num_thresholds=20),
            M.AUC(num_thresholds=20, curve="PR", name="pr"),
            M.AUC(num_thresholds=20, multi_label=True, name="labels"),
        ),
        _zero_one,
        3,
        "sigmoid",
    ),
    _row("operating points", _operating_points, _zero_one, 3, "sigmoid"),
    _row(
        "f scores",
        lambda: (
            M.F1Score(average="macro"),
            M.FBetaScore(average="weighted", beta=2.0),
            M.F1Score(average="micro", threshold=0.4, name="micro"),
        ),
        _hot,
        3,
        "softmax",
    ),
    _row(
        "binary iou",
        lambda: (M.BinaryIoU([0, 1], 0.5), M.BinaryIoU([1], 0.4, name="one")),
        _zero_one,
        3,
        "sigmoid",
    ),
    _row(
        "iou",
        lambda: (
            M.IoU(3, [0, 2], sparse_y_pred=False),
            M.MeanIoU(3, sparse_y_pred=False),
        ),
        _labels,
        3,
        "softmax",
    ),
    _row(
        "one hot iou",
        lambda: (M.OneHotIoU(3, [0, 1]), M.OneHotMeanIoU(3)),
        _hot,
        3,
        "softmax",
    ),
    _row(
        "hinge",
        lambda: (M.Hinge(), M.SquaredHinge()),
        _signs,
        3,
    ),
    _row("categorical hinge", lambda: (M.CategoricalHinge(),), _hot, 3),
    _row(
        "probabilistic",
        lambda: (
            M.KLDivergence(),
            M.Poisson(),
            M.CategoricalCrossentropy(),
            M.BinaryCrossentropy(),
        ),
        _shares,
        3,
        "softmax",
    ),
    _row(
        "sparse crossentropy",
        lambda: (M.SparseCategoricalCrossentropy(),),
        _labels,
        3,
        "softmax",
        weighted=True,
    ),
    _row(
        "correlation over an example",
        lambda: (
            M.PearsonCorrelation(axis=-1),
            M.ConcordanceCorrelation(axis=-1),
        ),
        _three,
        3,
    ),
    _row(
        "functions",
        lambda: (
            lambda y, p: keras.ops.mean(keras.ops.abs(y - p), axis=-1),
            M.MeanMetricWrapper(keras.losses.huber, name="huber"),
        ),
        _three,
        3,
    ),
)


class Spread(keras.metrics.Metric):
    """Keeps sums and squares in states of its own, with an extra counter."""

    def __init__(self, name: str = "spread"):
        super().__init__(name=name)
        self.moments = self.add_variable((2,), "zeros", name="moments")
        self.rows = self.add_variable((), "zeros", name="rows", dtype="int32")

    def update_state(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        error = tf.reshape(y_true - y_pred, [-1])
        added = tf.stack([tf.reduce_sum(error), tf.reduce_sum(error**2)])
        self.moments.assign(self.moments + added)
        self.rows.assign(self.rows + tf.shape(y_true)[0])

    def result(self) -> Any:
        rows = tf.cast(self.rows, "float32")
        mean = self.moments[0] / rows
        return {"mean": mean, "square": self.moments[1] / rows - mean**2}


@program("metric/own, with a dict as result")
def own(place: Place) -> dict[str, Any]:
    logs = BatchLogs()
    result = trained(
        place,
        lambda: problems.compiled(metrics=[Spread()]),
        *problems.regression(11),
        callbacks=[logs],
    )
    return result | logs.arrays()


class AddedMetric(keras.layers.Layer):
    """Tracks the mean of what passes through."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = keras.metrics.Mean(name="seen")
        self.total = keras.metrics.Sum(name="total")

    def call(self, x: Any) -> Any:
        self.seen.update_state(x)
        self.total.update_state(x)
        return x


@program("metric/in a layer")
def in_layer(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        model = keras.Sequential(
            [keras.Input((3,)), AddedMetric(), keras.layers.Dense(1)]
        )
        return problems.compiled(model)

    return trained(place, build, *problems.regression(11))


@program("metric/by output")
def by_output(place: Place) -> dict[str, Any]:
    x, y = problems.regression(11, targets=3)

    def build() -> keras.Model:
        inputs = keras.Input((3,))
        heads = {n: keras.layers.Dense(3, name=n)(inputs) for n in "ab"}
        return problems.compiled(
            keras.Model(inputs, heads),
            loss={"a": "mse", "b": "mae"},
            metrics={"a": ["mae", M.R2Score()], "b": [M.CosineSimilarity()]},
        )

    return trained(place, build, x, {"a": y, "b": y + 1})
