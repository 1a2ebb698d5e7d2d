"""Callbacks on two real workers: one writes, all decide alike, none hangs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.strategy.worker_processes import run_workers

pytestmark = pytest.mark.workers

START = """
import contextlib, io, logging, sys
import tfmulti
s = tfmulti.init()
import numpy as np
import keras
C = keras.callbacks
w = s.cluster_resolver.task_id
X = np.random.RandomState(0).randn(32, 3).astype("float32")
Y = X.sum(1, keepdims=True)
warnings = []
class Catch(logging.Handler):
    def emit(self, record):
        warnings.append(record.getMessage())
logging.getLogger("tfmulti").addHandler(Catch())

def model():
    keras.utils.set_random_seed(1)
    with s.scope():
        m = keras.Sequential([keras.Input((3,)),
                              keras.layers.BatchNormalization(),
                              keras.layers.Dense(4), keras.layers.Dense(1)])
        m.compile(keras.optimizers.Adam(0.1), "mse")
    return m

def weights(m):
    return [v.tolist() for v in m.get_weights()]

def fit(m, epochs, callbacks=(), **kwargs):
    kwargs = {"verbose": 0, "batch_size": 8} | kwargs
    return m.fit(X, Y, epochs=epochs, callbacks=list(callbacks), **kwargs)

found = {}
"""

DECISIONS = (
    START
    + """
class At(C.Callback):
    '''Does something once, on one worker, at one point.'''
    def __init__(self, worker, hook, number, action):
        super().__init__()
        def act(n, logs=None):
            if w == worker and n == number:
                action(self.model)
        setattr(self, hook, act)

def stop(m):
    m.stop_training = True
def rate(m):
    m.optimizer.learning_rate = 0.03125
def other_weights(m):
    m.set_weights([v + 1 for v in m.get_weights()])

def run(name, callbacks, epochs=4, **kwargs):
    m = model()
    del warnings[:]
    h = fit(m, epochs, callbacks, **kwargs)
    found[name] = {
        "epochs": len(h.history["loss"]), "weights": weights(m),
        "steps": int(m.optimizer.iterations.numpy()),
        "rate": float(m.optimizer.learning_rate.numpy()),
        "warnings": list(warnings),
        "reads": m.train_function.read_logs,
    }

run("plain", [])
run("stop at epoch end", [At(1, "on_epoch_end", 1, stop)])
run("stop at batch end", [At(1, "on_train_batch_end", 2, stop)])
run("stop at epoch begin", [At(1, "on_epoch_begin", 1, stop)])
run("stop on the chief's list only", [At(0, "on_epoch_end", 0, stop)][w:])
run("rate of the chief", [At(0, "on_epoch_end", 0, rate)])
run("rate of the other", [At(1, "on_epoch_end", 0, rate)])
run("rate at a batch", [At(0, "on_train_batch_end", 1, rate)])
run("weights at epoch end", [At(1, "on_epoch_end", 0, other_weights)])
schedule = C.LearningRateScheduler(lambda epoch, lr: 0.03125)
run("schedule on the chief only", [schedule][w:])
run("schedule on all", [C.LearningRateScheduler(lambda e, lr: lr / 2)])
early = lambda: C.EarlyStopping("loss", patience=0, min_delta=1e9)
run("early stopping on all", [early()])
run("early stopping on worker 1 only", [early()][1 - w:])
run("nan on worker 1's list only", [C.TerminateOnNaN()][1 - w:])

m = model()
if w:
    other_weights(m)
del warnings[:]
before = weights(model())
fit(m, 1)
found["weights before fit"] = {
    "weights": weights(m), "warnings": list(warnings)}
report(found=found)
"""
)


@pytest.fixture(scope="module")
def decisions():
    return [r["found"] for r in run_workers(DECISIONS, 2, timeout_s=200)]


def test_all_workers_end_with_the_same(decisions):
    chief, other = decisions
    assert len(chief) == 15
    for name, values in chief.items():
        assert values == other[name], name


@pytest.mark.parametrize(
    "name, epochs, steps",
    [
        ("stop at epoch end", 2, 8),
        ("stop at batch end", 1, 3),
        ("stop at epoch begin", 2, 5),
        ("stop on the chief's list only", 1, 4),
        ("early stopping on all", 2, 8),
        ("early stopping on worker 1 only", 2, 8),
        ("nan on worker 1's list only", 4, 16),
        ("plain", 4, 16),
    ],
)
def test_a_stop_of_one_is_a_stop_of_all(decisions, name, epochs, steps):
    for found in decisions:
        assert (found[name]["epochs"], found[name]["steps"]) == (epochs, steps)


def test_the_chiefs_rate_holds_and_a_warning_names_the_values(decisions):
    rates = {name: f["rate"] for name, f in decisions[0].items() if "rate" in f}
    assert rates["rate of the chief"] == 0.03125
    assert rates["rate at a batch"] == 0.03125
    assert rates["schedule on the chief only"] == 0.03125
    assert rates["rate of the other"] == pytest.approx(0.1)
    assert rates["schedule on all"] == pytest.approx(0.1 / 16)
    for name in ("rate of the chief", "rate of the other"):
        (warning,) = decisions[0][name]["warnings"]
        assert "learning_rate" in warning
        values = ["worker 0: 0.03125", "worker 1: 0.1"]
        if name == "rate of the other":
            values = ["worker 0: 0.1", "worker 1: 0.03125"]
        assert all(v in warning for v in values), warning
    for name in ("plain", "schedule on all", "stop at batch end"):
        assert decisions[0][name]["warnings"] == []


def test_the_chiefs_weights_hold(decisions):
    plain = decisions[0]["plain"]["weights"]
    kept = decisions[0]["weights at epoch end"]
    (warning,) = kept["warnings"]
    assert "worker 1 had other values" in warning and "gamma" in warning
    for ours, right in zip(kept["weights"], plain, strict=True):
        np.testing.assert_array_equal(ours, right)
    assert len(decisions[0]["weights before fit"]["warnings"]) == 1


def test_logs_of_batches_are_read_only_if_somebody_reads(decisions):
    for found in decisions:
        reads = {name for name, f in found.items() if f.get("reads")}
        assert reads == {
            "stop at batch end",
            "rate at a batch",
            "nan on worker 1's list only",
        }


FILES = (
    START
    + """
import builtins, os, pathlib, time
import h5py
from tfmulti.keras3 import saving
folder = pathlib.Path(%r)
writes = []
def note(cls):
    before = cls.__init__
    def init(self, file, *args, **kwargs):
        mode = args[0] if args else kwargs.get("mode", "r")
        if isinstance(file, (str, os.PathLike)) and mode[0] in "wxa":
            writes.append(os.path.basename(str(file)))
        before(self, file, *args, **kwargs)
    cls.__init__ = init
note(h5py.File)
open_ = builtins.open
def noting_open(file, mode="r", *args, **kwargs):
    if "w" in mode and str(file).endswith(".keras"):
        writes.append(os.path.basename(str(file)))
    return open_(file, mode, *args, **kwargs)
builtins.open = noting_open
def wrote():
    now = sorted(set(writes))
    del writes[:]
    return now
class Board(C.TensorBoard):
    def _log_epoch_metrics(self, epoch, logs):  # Scalars want tensorboard.
        with self._train_writer.as_default():
            self.summary.write("loss", logs["loss"], step=epoch)
    def on_test_end(self, logs=None):
        with self._val_writer.as_default():
            self.summary.write("loss", logs["loss"], step=0)
        self._pop_writer()
class Interrupt(C.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise RuntimeError("interrupted")

m = model()
best = C.ModelCheckpoint(str(folder / "best.keras"), "loss",
                         save_best_only=True)
screen = io.StringIO()
with contextlib.redirect_stdout(screen):
    h = fit(m, 3, [
        C.ModelCheckpoint(str(folder / "m-{epoch}.keras")), best,
        C.CSVLogger(str(folder / "log.csv")),
        C.CSVLogger(str(folder / "appended.csv"), append=True),
        Board(str(folder / "board")),
        C.CSVLogger(str(folder / f"own-{w}.csv")),
    ], verbose=2)
    fit(m, 1, [C.CSVLogger(str(folder / "appended.csv"), append=True)])
    m.evaluate(X, Y, verbose=1, callbacks=[Board(str(folder / "board"))])
    m.predict(X, verbose=1)
found["screen"] = screen.getvalue()
found["best"] = [best.best, min(h.history["loss"])]
found["callbacks"] = wrote()
found["losses"] = h.history["loss"]
found["there"] = sorted(p.name for p in folder.iterdir())
board = list((folder / "board" / "train").iterdir())
found["board"] = len(board + list((folder / "board/validation").iterdir()))
loaded = keras.models.load_model(folder / "m-3.keras")
found["loaded"] = [v.tolist() for v in loaded.get_weights()]

# Interrupted and resumed, against a run that is not.
uninterrupted = model()
fit(uninterrupted, 4, shuffle=False)
m = model()
backup = folder / "backup"
try:
    fit(m, 4, [C.BackupAndRestore(str(backup)), Interrupt()], shuffle=False)
except RuntimeError as error:
    found["interrupted"] = str(error)
found["backup_files"] = sorted(p.name for p in backup.iterdir())
saving.agreement.barrier(s, "test")
wrote()
m = model()
del warnings[:]
h = fit(m, 4, [C.BackupAndRestore(str(backup))], shuffle=False)
found["resumed"] = {
    "epochs": len(h.history["loss"]), "weights": weights(m),
    "right": weights(uninterrupted), "left": backup.exists(),
    "wrote": wrote(), "warnings": list(warnings),
    "steps": int(m.optimizer.iterations.numpy()),
}
# Only the chief's disk has the backup.
m = model()
mine = folder / f"disk-{w}" / "backup"
callbacks = [C.BackupAndRestore(str(mine), delete_checkpoint=False)]
fit(m, 2, callbacks, shuffle=False)
if w:
    import shutil
    shutil.rmtree(mine)
m = model()
h = fit(m, 4, [C.BackupAndRestore(str(mine))], shuffle=False)
found["one disk"] = {"epochs": len(h.history["loss"]), "weights": weights(m)}
wrote()

# Inside epochs, on the chief's list alone: state is agreed, nothing hangs.
m = model()
inside = C.ModelCheckpoint(str(folder / "in-{batch}.weights.h5"),
                           save_weights_only=True, save_freq=3)
fit(m, 1, [inside][w:], shuffle=False)
found["inside"] = wrote()

# By the person's own code.
m.save(folder / "all.keras")
found["all"] = wrote()
keras.models.load_model(folder / "all.keras")
m.save_weights(folder / "all.weights.h5")
m.load_weights(folder / "all.weights.h5")
keras.saving.save_model(m, folder / "all.keras")
found["all again"] = wrote()
if w == 0:
    m.save(folder / "chief.keras")
found["chief only"] = wrote()
begin = time.monotonic()
m.save(folder / f"each-{w}.keras")
found["each"] = wrote()
found["each_s"] = time.monotonic() - begin
fit(m, 1)
m.save(folder / "after.keras")
found["after"] = wrote()
m.export(folder / "exported", verbose=False)
found["exported"] = (folder / "exported" / "saved_model.pb").exists()

# Many scripts do all in the scope, where variables are made together.
keras.backend.clear_session()  # Keras forgets what saving leaves out.
with s.scope():
    m = model()
    fit(m, 1, [C.BackupAndRestore(str(folder / "b")),
               C.ModelCheckpoint(str(folder / "scope.keras"))])
    if w == 0:
        m.save(folder / "chief-scope.keras")
        m.export(folder / "chief-exported", verbose=False)
    wrote()
    m.save(folder / "all-scope.keras")
    found["scope"] = wrote()
report(found=found)
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def files(folder):
    results = run_workers(FILES % str(folder), 2, timeout_s=240)
    return [r["found"] for r in results]


def test_the_chief_writes_what_callbacks_write(files, folder):
    chief, other = files
    names = {f"m-{epoch}.keras" for epoch in (1, 2, 3)} | {"best.keras"}
    assert names <= set(chief["callbacks"]) and not other["callbacks"]
    assert chief["there"] == other["there"]
    assert chief["board"] == other["board"] == 3
    assert chief["loaded"] == other["loaded"]


def test_a_log_has_one_header_and_one_row_for_each_epoch(files, folder):
    rows = list(csv.DictReader((folder / "log.csv").open()))
    assert [r["epoch"] for r in rows] == ["0", "1", "2"]
    losses = files[1]["losses"]
    assert [float(r["loss"]) for r in rows] == pytest.approx(losses)
    appended = (folder / "appended.csv").read_text().splitlines()
    assert [line[0] for line in appended] == ["e", "0", "1", "2", "0"]
    for worker in (0, 1):  # Paths of one's own are everybody's own.
        own = (folder / f"own-{worker}.csv").read_text().splitlines()
        assert len(own) == 4


def test_the_best_value_is_known_to_all(files):
    for found in files:
        best, right = found["best"]
        assert best == pytest.approx(right)


def test_progress_is_printed_on_the_chief_alone(files):
    chief, other = files
    assert "Epoch 3/3" in chief["screen"] and "loss" in chief["screen"]
    assert other["screen"] == ""


def test_a_resumed_run_ends_as_one_that_was_not_interrupted(files):
    for found in files:
        assert found["interrupted"] == "interrupted"
        assert found["backup_files"] == [
            "latest.weights.h5",
            "training_metadata.json",
        ]
        resumed = found["resumed"]
        assert (resumed["epochs"], resumed["steps"]) == (2, 16)
        assert not resumed["left"] and not resumed["warnings"]
        for ours, right in zip(
            resumed["weights"], resumed["right"], strict=True
        ):
            np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-6)
    assert files[0]["resumed"]["weights"] == files[1]["resumed"]["weights"]
    assert files[0]["resumed"]["wrote"] == ["latest.weights.h5"]
    assert files[1]["resumed"]["wrote"] == []


def test_a_backup_on_the_chiefs_disk_is_enough(files):
    right = files[0]["resumed"]["right"]
    for found in files:
        assert found["one disk"]["epochs"] == 2
        got = found["one disk"]["weights"]
        for ours, value in zip(got, right, strict=True):
            np.testing.assert_allclose(ours, value, rtol=1e-5, atol=1e-6)


def test_saving_inside_epochs_on_one_worker_hangs_nobody(files, folder):
    assert files[0]["inside"] == ["in-3.weights.h5"]
    assert files[1]["inside"] == []


def test_a_script_may_save_on_all_on_the_chief_or_apart(files, folder):
    chief, other = files
    assert chief["all"] == ["all.keras"] and other["all"] == []
    assert chief["all again"] == ["all.keras", "all.weights.h5"]
    assert other["all again"] == []
    assert chief["chief only"] == ["chief.keras"]
    assert other["chief only"] == []
    assert other["each"] == [".tmp-worker1-each-1.keras"]
    assert (folder / "each-0.keras").stat().st_size > 0
    assert (folder / "each-1.keras").stat().st_size > 0
    assert other["each_s"] < 8
    assert chief["after"] == ["after.keras"] and other["after"] == []
    assert chief["scope"] == ["all-scope.keras"] and other["scope"] == []
    assert (folder / "chief-exported").exists()
    assert chief["exported"] and other["exported"]
    assert not list(folder.rglob(".tmp*"))
    assert json.dumps(chief["losses"]) == json.dumps(other["losses"])
