"""Loops of a person's own over `train_on_batch` and its neighbours."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from tests.equivalence import problems
from tests.equivalence.outcome import state_of
from tests.equivalence.program import Place, program
from tests.equivalence.programs.models import MovingMean


def _model(place: Place, **options: Any) -> keras.Model:
    with place.scope():
        return problems.compiled(
            optimizer=keras.optimizers.Adam(0.05), metrics=["mae"], **options
        )


@program("on batch/train", "A09", "A11")
def train(place: Place) -> dict[str, Any]:
    x, y = problems.regression(12)
    model = _model(place)
    logs = [model.train_on_batch(x[i::3], y[i::3]) for i in range(3)]
    return state_of(place, model) | {"logs": logs}


@program("on batch/train on uneven batches", "A09")
def train_uneven(place: Place) -> dict[str, Any]:
    x, y = problems.regression(12)
    model = _model(place)
    logs = [model.train_on_batch(x[:n], y[:n]) for n in (1, 5, 2, 7, 3)]
    return state_of(place, model) | {"logs": logs}


@program("on batch/layer with state of its own, read at once", "A28")
def own_state(place: Place) -> dict[str, Any]:
    x, y = problems.regression(12)
    with place.scope():
        model = problems.compiled(
            keras.Sequential(
                [keras.Input((3,)), MovingMean(), keras.layers.Dense(1)]
            )
        )
    found = {}
    for n in (12, 5, 3):
        model.train_on_batch(x[:n], y[:n])
        for i, value in enumerate(model.get_weights()):
            found[f"after {n}/{i}"] = value
    return found


@program("on batch/train with sample weights")
def train_weighted(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    model = _model(place)
    logs = [
        model.train_on_batch(x, y, sample_weight=problems.weights(seed=i))
        for i in range(3)
    ]
    return state_of(place, model) | {"logs": logs}


@program("on batch/train with class weights")
def train_classes(place: Place) -> dict[str, Any]:
    with place.scope():
        model = problems.compiled(
            problems.dense(3, activation="softmax"),
            loss="sparse_categorical_crossentropy",
        )
    x, y = problems.classes()
    weights = {0: 0.5, 1: 2.0, 2: 0.1}
    logs = [model.train_on_batch(x, y, class_weight=weights) for _ in range(3)]
    return state_of(place, model) | {"logs": logs}


@program("on batch/test", "A09")
def test(place: Place) -> dict[str, Any]:
    x, y = problems.regression(11)
    model = _model(place)
    logs = [model.test_on_batch(x[:n], y[:n]) for n in (4, 3, 1)]
    named = model.test_on_batch(x, y, return_dict=True)
    return {"logs": logs} | named


@program("on batch/predict", "A09")
def predict(place: Place) -> dict[str, Any]:
    x, _ = problems.regression(11)
    model = _model(place)
    return {str(n): model.predict_on_batch(x[:n]) for n in (1, 4, 7)}


@program("on batch/turns of train, test and predict")
def turns(place: Place) -> dict[str, Any]:
    x, y = problems.regression(12)
    model = _model(place)
    logs, outputs = [], []
    for begin in (0, 4, 8):
        chosen = slice(begin, begin + 4)
        logs.append(model.train_on_batch(x[chosen], y[chosen]))
        model.reset_metrics()
        logs.append(model.test_on_batch(x, y))
        outputs.append(model.predict_on_batch(x[chosen]))
    return state_of(place, model) | {
        "logs": logs,
        "outputs": np.concatenate(outputs),
    }


@program("on batch/several outputs")
def several_outputs(place: Place) -> dict[str, Any]:
    x, y = problems.regression(7)
    with place.scope():
        inputs = keras.Input((3,))
        heads = {n: keras.layers.Dense(1, name=n)(inputs) for n in "ab"}
        model = problems.compiled(
            keras.Model(inputs, heads), loss={"a": "mse", "b": "mae"}
        )
    logs = [
        model.train_on_batch(x, {"a": y, "b": -y}, return_dict=True)
        for _ in range(2)
    ]
    outputs = model.predict_on_batch(x)
    return (
        state_of(place, model)
        | logs[0]
        | outputs
        | {f"second/{k}": v for k, v in logs[1].items()}
    )
