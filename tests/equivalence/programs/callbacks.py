"""The stock callbacks of Keras, and callbacks as people write them.

Left out: TensorBoard, which leaves a log and no values to compare (what it
writes, and where, is tested in `tests/keras3`); OrbaxCheckpoint, which needs
a package of its own; RemoteMonitor, which sends to a server.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tests.equivalence import problems
from tests.equivalence.outcome import BatchLogs, state_of, trained
from tests.equivalence.program import Place, program

C = keras.callbacks


def _plain() -> keras.Model:
    return problems.compiled(
        optimizer=keras.optimizers.Adam(0.1), metrics=["mae"]
    )


def _with(place: Place, *callbacks: Any, **options: Any) -> dict[str, Any]:
    """Trains for some epochs with callbacks and data to validate on."""
    x, y = problems.regression(10)
    return trained(
        place,
        options.pop("build", _plain),
        x,
        y,
        callbacks=list(callbacks),
        validation_data=(x[3:], y[3:]),
        **({"epochs": 4} | options),
    )


@program("callback/logs at batch ends", "A32")
def batch_logs(place: Place) -> dict[str, Any]:
    logs = BatchLogs()
    return _with(place, logs) | logs.arrays()


@program("callback/lambda", "A32")
def lambdas(place: Place) -> dict[str, Any]:
    train: list[float] = []
    epochs: list[float] = []
    callback = C.LambdaCallback(
        on_train_batch_end=lambda batch, logs: train.append(logs["loss"]),
        on_epoch_end=lambda epoch, logs: epochs.append(logs["val_mae"]),
    )
    result = _with(place, callback)
    return result | {"train": train, "epochs": epochs}


@program("callback/learning rate scheduler", "A16")
def rate_scheduler(place: Place) -> dict[str, Any]:
    return _with(place, C.LearningRateScheduler(lambda epoch, rate: rate * 0.5))


@program("callback/reduce rate on plateau")
def plateau(place: Place) -> dict[str, Any]:
    return _with(
        place,
        C.ReduceLROnPlateau("val_loss", factor=0.1, patience=0, min_delta=9.0),
    )


@program("callback/early stopping restores the best")
def early_stopping(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        return problems.compiled(optimizer=keras.optimizers.SGD(0.9))

    return _with(
        place,
        C.EarlyStopping("val_loss", patience=1, restore_best_weights=True),
        build=build,
        epochs=8,
    )


@program("callback/terminate on nan")
def terminate(place: Place) -> dict[str, Any]:
    x, y = problems.regression(10)
    y[9] = np.nan
    return trained(
        place,
        _plain,
        x,
        y,
        callbacks=[C.TerminateOnNaN()],
        batch_size=2,
        evaluate=False,
        predict=(),
        optimizer=False,
    )


@program("callback/csv logger", "A15")
def csv_logger(place: Place) -> dict[str, Any]:
    file = place.folder / "log.csv"
    result = _with(place, C.CSVLogger(str(file), append=True))
    rows = list(csv.reader(file.read_text().splitlines()))
    numbers = np.array(rows[1:], "float64")
    return result | {"header": rows[0], "rows": numbers}


@program("callback/checkpoint of the whole model", "A14")
def checkpoint(place: Place) -> dict[str, Any]:
    file = place.folder / "{epoch}.keras"
    result = _with(place, C.ModelCheckpoint(str(file)))
    model = keras.models.load_model(place.folder / "3.keras")
    names = sorted(p.name for p in place.folder.iterdir())
    return (
        result
        | {"files": names}
        | {f"saved/{i}": w for i, w in enumerate(model.get_weights())}
    )


@program("callback/checkpoint of the best weights", "A14")
def best_weights(place: Place) -> dict[str, Any]:
    file = place.folder / "best.weights.h5"

    def build() -> keras.Model:
        return problems.compiled(optimizer=keras.optimizers.SGD(0.4))

    result = _with(
        place,
        C.ModelCheckpoint(
            str(file),
            monitor="val_loss",
            save_best_only=True,
            save_weights_only=True,
        ),
        build=build,
    )
    with place.scope():
        model = build()
    model.load_weights(file)
    return result | {f"saved/{i}": w for i, w in enumerate(model.get_weights())}


@program("callback/checkpoint every few batches", "A14")
def batch_checkpoint(place: Place) -> dict[str, Any]:
    file = place.folder / "{batch}.weights.h5"
    result = _with(
        place,
        C.ModelCheckpoint(str(file), save_freq=2, save_weights_only=True),
        epochs=1,
    )
    return result | {"files": sorted(p.name for p in place.folder.iterdir())}


class Interrupt(keras.callbacks.Callback):
    """Raises at the start of the third epoch."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 2:
            raise KeyError("interrupted")


def _resumed(
    place: Place, build: Callable[[], keras.Model], **options: Any
) -> dict[str, Any]:
    x, y = problems.regression(10)
    folder = str(place.folder / "backup")
    with place.scope():
        first = build()
    try:
        first.fit(
            x,
            y,
            epochs=4,
            batch_size=4,
            shuffle=False,
            verbose=0,
            callbacks=[C.BackupAndRestore(folder, **options), Interrupt()],
        )
    except KeyError:
        pass
    result = trained(
        place,
        build,
        x,
        y,
        epochs=4,
        callbacks=[C.BackupAndRestore(folder, **options)],
    )
    return result | {"left": Path(folder).exists()}


@program("callback/backup and restore", "A14", "A17")
def backup(place: Place) -> dict[str, Any]:
    return _resumed(place, _plain)


@program("callback/backup in the middle of an epoch", "A14")
def backup_batches(place: Place) -> dict[str, Any]:
    return _resumed(place, _plain, save_freq=2)


@program("callback/swap ema weights", "A27")
def swap_ema(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        return problems.compiled(
            optimizer=keras.optimizers.SGD(0.05, use_ema=True, ema_momentum=0.5)
        )

    return _with(place, C.SwapEMAWeights(swap_on_epoch=True), build=build)


@program("callback/progress bar")
def progress(place: Place) -> dict[str, Any]:
    return _with(place, C.ProgbarLogger(), epochs=2)


@program("callback/verbose training")
def verbose(place: Place) -> dict[str, Any]:
    return _with(place, verbose=1, epochs=2)


class StopsItself(keras.callbacks.Callback):
    """Stops in the middle of the second epoch."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.model.optimizer.iterations.numpy() == 5:
            self.model.stop_training = True


@program("callback/stop in the middle of an epoch", "A18")
def stops(place: Place) -> dict[str, Any]:
    return _with(place, StopsItself())


class RateByStep(keras.callbacks.Callback):
    """Lowers the rate at each batch's begin."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        step = int(self.model.optimizer.iterations.numpy())
        self.model.optimizer.learning_rate = 0.1 / (1 + step)


@program("callback/own, rate by step", "A16")
def rate_by_step(place: Place) -> dict[str, Any]:
    return _with(place, RateByStep())


class WeightNorms(keras.callbacks.Callback):
    """Reads weights at batch ends, and evaluates and predicts in between."""

    def __init__(self, x: Any, y: Any):
        super().__init__()
        self.x, self.y = x, y
        self.norms: list[float] = []
        self.evaluated: list[float] = []
        self.predicted: list[Any] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        first = self.model.get_weights()[0]
        self.norms.append(float(np.linalg.norm(first)))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs = self.model.evaluate(
            self.x, self.y, batch_size=3, verbose=0, return_dict=True
        )
        self.evaluated.append(logs["mae"])
        self.predicted.append(
            self.model.predict(self.x, batch_size=3, verbose=0)
        )


@program("callback/own, evaluates and predicts inside fit")
def evaluates(place: Place) -> dict[str, Any]:
    callback = WeightNorms(*problems.regression(7))
    result = _with(place, callback, epochs=2)
    return result | {
        "norms": callback.norms,
        "evaluated": callback.evaluated,
        "predicted": callback.predicted,
    }


@program("callback/freezes a layer between fits")
def freezes(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    options = {"batch_size": 4, "shuffle": False, "verbose": 0}
    with place.scope():
        model = _plain()
    model.fit(x, y, **options)
    with place.scope():
        model.layers[0].trainable = False
        model.compile(keras.optimizers.Adam(0.05), "mse")
    history = model.fit(x, y, epochs=2, **options)
    return state_of(place, model) | history.history


@program("callback/continues a fit")
def continues(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    options = {"batch_size": 4, "shuffle": False, "verbose": 0}
    with place.scope():
        model = _plain()
    first = model.fit(x, y, epochs=2, **options)
    second = model.fit(x[:7], y[:7], epochs=5, initial_epoch=2, **options)
    return (
        state_of(place, model)
        | {f"first/{k}": v for k, v in first.history.items()}
        | {f"second/{k}": v for k, v in second.history.items()}
    )


@program("callback/saves and loads the model by hand", "A14", "A28")
def saves(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    options = {"batch_size": 4, "shuffle": False, "verbose": 0}
    with place.scope():
        model = _plain()
    model.fit(x, y, **options)
    model.save(place.folder / "model.keras")
    with place.scope():
        model = keras.models.load_model(place.folder / "model.keras")
    history = model.fit(x, y, **options)
    return state_of(place, model) | history.history
