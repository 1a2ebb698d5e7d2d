"""What callbacks do to a run, told from the callbacks alone."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tfmulti.keras3 import alike, callbacks
from tfmulti.keras3 import callback_roles as roles

K = keras.callbacks


class OnBatchEnd(K.Callback):
    def on_batch_end(self, batch, logs=None):
        pass


class OnTestBatchEnd(K.Callback):
    def on_test_batch_end(self, batch, logs=None):
        pass


class Clock(K.Callback):
    reads_batch_logs = False

    def on_train_batch_end(self, batch, logs=None):
        pass


def progress(verbose):
    logger = K.ProgbarLogger()
    logger.set_params({"verbose": verbose, "epochs": 1, "steps": 1})
    return logger


def checkpoint(save_freq):
    return K.ModelCheckpoint("m.keras", save_freq=save_freq)


READERS = [
    (lambda: progress(1), True, True, False),
    (lambda: progress("auto"), True, True, False),
    (lambda: progress(2), False, False, False),
    (lambda: K.TensorBoard("logs"), False, False, False),
    (lambda: K.TensorBoard("logs", update_freq=5), True, False, False),
    (lambda: K.TensorBoard("logs", update_freq="batch"), True, False, False),
    (lambda: K.TerminateOnNaN(), True, False, True),
    (lambda: checkpoint("epoch"), False, False, False),
    (lambda: checkpoint(3), True, False, False),
    (lambda: K.BackupAndRestore("b", save_freq=3), False, False, False),
    (lambda: K.CSVLogger("log.csv"), False, False, False),
    (lambda: K.EarlyStopping(), False, False, False),
    (lambda: K.History(), False, False, False),
    (lambda: K.SwapEMAWeights(), False, False, False),
    (lambda: K.LambdaCallback(on_epoch_end=print), False, False, False),
    (lambda: K.LambdaCallback(on_train_batch_end=print), True, False, True),
    (OnBatchEnd, True, False, True),
    (OnTestBatchEnd, False, True, False),
    (Clock, False, False, False),
]


@pytest.mark.parametrize("make, train, test, decides", READERS)
def test_who_reads_and_who_decides(make, train, test, decides):
    callback = make()
    assert roles.reads_train_logs(callback) is train
    assert roles.reads_test_logs(callback) is test
    assert roles.decides_at_batches(callback) is decides


def test_the_lowest_worker_that_wants_a_place_owns_it():
    assert roles.owners([["a"], ["a", "b"], ["b", "c"]]) == {
        "a": 0,
        "b": 1,
        "c": 2,
    }


def test_places_are_told_by_kind_and_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = roles.place_of(K.CSVLogger("log.csv"))
    assert here == roles.place_of(K.CSVLogger(str(tmp_path / "log.csv")))
    assert here != roles.place_of(K.TensorBoard("log.csv"))
    assert roles.place_of(K.EarlyStopping()) is None


@pytest.mark.parametrize("every", [1, 3, 7])
@pytest.mark.parametrize("steps_per_execution", [1, 4])
@pytest.mark.parametrize("kind", ["checkpoint", "backup"])
def test_a_clock_knows_when_keras_saves(
    every, steps_per_execution, kind, tmp_path
):
    path = str(tmp_path / "m.keras")
    if kind == "checkpoint":
        callback = K.ModelCheckpoint(path, save_freq=every)
    else:
        callback = K.BackupAndRestore(path, save_freq=every)
    saves = []
    callback._save_model = lambda *args, **kwargs: saves.append(True)
    clock = callbacks._clock(*roles.batch_saves(callback))
    due = 0
    for epoch in range(3):
        callback.on_epoch_begin(epoch)
        for batch in range(steps_per_execution - 1, 12, steps_per_execution):
            callback.on_train_batch_end(batch, {})
            due += clock.due(batch)
            assert due == len(saves)
        callback._current_epoch = epoch
        if kind == "backup":
            callback.on_epoch_end(epoch)
        clock.epoch_ended()
    assert due


def test_digests_tell_every_bit_and_every_place(devices):
    values = np.random.default_rng(0).normal(size=99).astype("float32")
    right = int(alike.bits_digest(values))
    assert right == int(alike.bits_digest(values.copy()))
    for place in (0, 50, 98):
        other = values.copy()
        other[place] = np.nextafter(other[place], np.inf)
        assert right != int(alike.bits_digest(other))
    swapped = values.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    assert right != int(alike.bits_digest(swapped))
    for dtype in ("float16", "float64", "int32", "uint32", "int64", "bool"):
        alike.bits_digest(values.astype(dtype))
