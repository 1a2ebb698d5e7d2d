"""Every loss of Keras with every reduction, masks, weights, and a person's own.

A program of a loss class trains one model with a head for each reduction, all
with sample weights and uneven parts.

Left out, since they are no sums over examples: Circle (compares the examples
of a batch with each other), and Dice and Tversky over the whole batch (their
default axis); a replica sees its own part alone. Over the axes of an example
they are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.equivalence import problems
from tests.equivalence.outcome import trained
from tests.equivalence.program import Place, Program, program

L = keras.layers
X = keras.losses

REDUCTIONS = ("sum", "sum_over_batch_size", "mean", "mean_with_sample_weight")


def _row(
    name: str,
    make: Callable[..., Any],
    target: Callable[[], np.ndarray],
    activation: str | None = None,
    outputs: int = 1,
) -> Program:
    """Gives the program that trains a head with each reduction of a loss."""

    @program(f"loss/{name}", "A30")
    def run(place: Place) -> dict[str, Any]:
        x, _ = problems.regression()
        y = target()

        def build() -> keras.Model:
            inputs = keras.Input((3,))
            hidden = L.Dense(4, "tanh")(inputs)
            heads = {
                r: L.Dense(outputs, activation, name=r)(hidden)
                for r in REDUCTIONS
            }
            losses = {r: make(reduction=r) for r in REDUCTIONS}
            model = keras.Model(inputs, heads)
            return problems.compiled(model, keras.optimizers.SGD(0.01), losses)

        return trained(
            place,
            build,
            x,
            {r: y for r in REDUCTIONS},
            sample_weight={
                r: problems.weights(seed=i) for i, r in enumerate(REDUCTIONS)
            },
            predict=(),
        )

    return run


def _numbers() -> np.ndarray:
    return problems.regression()[1]


def _three() -> np.ndarray:
    return problems.regression(targets=3)[1]


def _positive() -> np.ndarray:
    return np.abs(_three()) + 0.1


def _shares() -> np.ndarray:
    positive = _positive()
    return positive / positive.sum(axis=1, keepdims=True)


def _labels() -> np.ndarray:
    return problems.classes()[1]


def _hot() -> np.ndarray:
    return problems.one_hot(_labels())


def _zero_one() -> np.ndarray:
    return (_three() > 0).astype("float32")


def _signs() -> np.ndarray:
    return 2 * _zero_one() - 1


EVERY = (
    _row("mse", X.MeanSquaredError, _numbers),
    _row("mae", X.MeanAbsoluteError, _numbers),
    _row("mape", X.MeanAbsolutePercentageError, _positive, "softplus", 3),
    _row("msle", X.MeanSquaredLogarithmicError, _positive, "softplus", 3),
    _row("huber", X.Huber, _numbers),
    _row("log cosh", X.LogCosh, _numbers),
    _row("cosine similarity", X.CosineSimilarity, _three, None, 3),
    _row("poisson", X.Poisson, _positive, "softplus", 3),
    _row("kl divergence", X.KLDivergence, _shares, "softmax", 3),
    _row("binary crossentropy", X.BinaryCrossentropy, _zero_one, "sigmoid", 3),
    _row("binary focal", X.BinaryFocalCrossentropy, _zero_one, "sigmoid", 3),
    _row(
        "categorical crossentropy",
        lambda **o: X.CategoricalCrossentropy(
            from_logits=True, label_smoothing=0.1, **o
        ),
        _hot,
        None,
        3,
    ),
    _row(
        "categorical focal", X.CategoricalFocalCrossentropy, _hot, "softmax", 3
    ),
    _row(
        "categorical generalized",
        X.CategoricalGeneralizedCrossEntropy,
        _labels,
        "softmax",
        3,
    ),
    _row(
        "sparse categorical crossentropy",
        lambda **o: X.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=2, **o
        ),
        _labels,
        None,
        3,
    ),
    _row("categorical hinge", X.CategoricalHinge, _hot, None, 3),
    _row("hinge", X.Hinge, _signs, None, 3),
    _row("squared hinge", X.SquaredHinge, _signs, None, 3),
    _row(
        "dice over an example",
        lambda **o: X.Dice(axis=-1, **o),
        _zero_one,
        "sigmoid",
        3,
    ),
    _row(
        "tversky over an example",
        lambda **o: X.Tversky(axis=-1, **o),
        _zero_one,
        "sigmoid",
        3,
    ),
)


@program("loss/ctc")
def ctc(place: Place) -> dict[str, Any]:
    draw = np.random.RandomState(0)
    x = draw.randn(10, 6, 3).astype("float32")
    y = problems.tokens(length=2, words=4) + 1

    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((6, 3)), L.Dense(6)])
        return problems.compiled(model, loss=X.CTC())

    return trained(place, build, x, y)


@program("loss/unreduced", "A30")
def unreduced(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(
            optimizer=keras.optimizers.SGD(0.01),
            loss=X.MeanSquaredError(reduction=None),
        ),
        *problems.regression(),
    )


@program("loss/unreduced weighted", "A30")
def unreduced_weighted(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(
            optimizer=keras.optimizers.SGD(0.01),
            loss=X.MeanAbsoluteError(reduction="none"),
        ),
        *problems.regression(),
        sample_weight=problems.weights(),
    )


@program("loss/own function that returns a scalar", "A03")
def scalar_function(place: Place) -> dict[str, Any]:
    def loss(y: Any, p: Any) -> Any:
        return tf.reduce_mean(tf.square(y - p))

    return trained(
        place, lambda: problems.compiled(loss=loss), *problems.regression()
    )


@program("loss/own function per example")
def example_function(place: Place) -> dict[str, Any]:
    def loss(y: Any, p: Any) -> Any:
        return keras.ops.mean(keras.ops.abs(y - p) ** 1.5, axis=-1)

    return trained(
        place, lambda: problems.compiled(loss=loss), *problems.regression()
    )


class ScalarLoss(keras.losses.Loss):
    """Returns a scalar mean from `call`."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return tf.reduce_mean(tf.square(y_true - y_pred))


@program("loss/own class that returns a scalar", "A03")
def scalar_class(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(loss=ScalarLoss()),
        *problems.regression(),
    )


def _masked(
    place: Place, loss: Any, metrics: Any = (), **options: Any
) -> dict[str, Any]:
    """Trains a tagger on padded words, so that the loss gets a mask."""
    ids = problems.tokens()

    def build() -> keras.Model:
        model = keras.Sequential(
            [
                keras.Input((ids.shape[1],), dtype="int32"),
                L.Embedding(7, 4, mask_zero=True),
                L.Dense(3),
            ]
        )
        return problems.compiled(
            model, loss=loss, metrics=list(metrics), weighted_metrics=[]
        )

    return trained(place, build, ids, ids % 3, **options)


def _tagging(reduction: str) -> Any:
    return X.SparseCategoricalCrossentropy(
        from_logits=True, reduction=reduction
    )


@program("loss/masked mean", "A08")
def masked_mean(place: Place) -> dict[str, Any]:
    return _masked(place, _tagging("sum_over_batch_size"), ["accuracy"])


@program("loss/masked sum")
def masked_sum(place: Place) -> dict[str, Any]:
    return _masked(place, _tagging("sum"))


@program("loss/masked weighted mean")
def masked_weighted(place: Place) -> dict[str, Any]:
    return _masked(
        place,
        _tagging("mean_with_sample_weight"),
        sample_weight=problems.weights()[:, None],
    )


@program("loss/masked with sample weights")
def masked_samples(place: Place) -> dict[str, Any]:
    return _masked(
        place,
        _tagging("sum_over_batch_size"),
        sample_weight=problems.weights()[:, None],
    )


@program("loss/weights per token")
def token_weights(place: Place) -> dict[str, Any]:
    draw = np.random.RandomState(0)
    weights = draw.uniform(0, 2, (10, 5)).astype("float32")
    return _masked(
        place, _tagging("mean_with_sample_weight"), sample_weight=weights
    )


@program("loss/class weights")
def class_weights(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        return problems.compiled(
            problems.dense(3, activation="softmax"),
            loss="sparse_categorical_crossentropy",
        )

    return trained(
        place,
        build,
        *problems.classes(),
        class_weight={0: 0.5, 1: 2.0, 2: 0.1},
    )


@program("loss/all weights zero in a batch")
def zero_weights(place: Place) -> dict[str, Any]:
    weights = problems.weights()
    weights[4:8] = 0
    return trained(
        place,
        lambda: problems.compiled(
            loss=X.MeanSquaredError(reduction="mean_with_sample_weight")
        ),
        *problems.regression(),
        sample_weight=weights,
    )


@program("loss/no loss for an output")
def no_loss(place: Place) -> dict[str, Any]:
    x, y = problems.regression()

    def build() -> keras.Model:
        inputs = keras.Input((3,))
        first = L.Dense(1, name="first")(inputs)
        second = L.Dense(2, name="second")(inputs)
        return problems.compiled(
            keras.Model(inputs, {"first": first, "second": second}),
            loss={"first": "mse", "second": None},
        )

    return trained(place, build, x, {"first": y, "second": y[:, [0, 0]]})


@program("loss/unequal loss weights")
def loss_weights(place: Place) -> dict[str, Any]:
    x, y = problems.regression()

    def build() -> keras.Model:
        inputs = keras.Input((3,))
        hidden = L.Dense(4, "tanh")(inputs)
        heads = [L.Dense(1, name=n)(hidden) for n in ("first", "second")]
        return problems.compiled(
            keras.Model(inputs, heads),
            loss=["mse", "mae"],
            loss_weights=[0.3, 2.0],
            metrics=[["mae"], ["mse"]],
        )

    return trained(place, build, x, [y, -y])
