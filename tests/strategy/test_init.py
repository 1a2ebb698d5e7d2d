"""tfmulti.init in processes of its own: devices are fixed once."""

from __future__ import annotations

import pytest

from tests.strategy.worker_processes import run_alone

pytestmark = pytest.mark.workers

TWICE = """
import tfmulti
from tfmulti.communication import Communication
from tfmulti.errors import UsageError
s = tfmulti.init("mirrored", replicas=3)
import tensorflow as tf
def refused(**values):
    try:
        tfmulti.init(**values)
        return ""
    except UsageError as error:
        return str(error)
report(
    mirrored=isinstance(s, tf.distribute.MirroredStrategy),
    replicas=s.num_replicas_in_sync,
    same=tfmulti.init("mirrored", 3) is s and tfmulti.init() is s,
    other=refused(strategy="mirrored", replicas=2),
    settings=refused(strategy="mirrored", replicas=3,
        communication=Communication(all_reduce="hierarchical_copy")),
)
"""


def test_a_second_call_gives_the_same_strategy_or_says_why_not():
    result = run_alone(TWICE)
    assert result["mirrored"] and result["replicas"] == 3 and result["same"]
    assert "replicas=2" in result["other"] and "replicas=3" in result["other"]
    assert "another communication record" in result["settings"]
    assert result["log"].count("3 replicas on logical CPU devices") == 1


ONE = """
import sys
import tfmulti
assert "tensorflow" not in sys.modules
s = tfmulti.init()
import keras, tensorflow as tf
with s.scope():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.ones([8, 2]), tf.ones([8, 1]), verbose=0)
report(
    default=s is tf.distribute.get_strategy(),
    replicas=s.num_replicas_in_sync,
    fit=keras.Model.fit.__module__,
    variable=type(model.weights[0].value).__name__,
)
"""


def test_one_device_leaves_keras_as_it_is():
    result = run_alone(ONE)
    assert result["default"] and result["replicas"] == 1
    assert result["fit"].startswith("keras.")
    assert "Mirrored" not in result["variable"]


FIT = """
import tfmulti
s = tfmulti.init("mirrored")
import keras, numpy as np
with s.scope():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(
        1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.1), "mse")
x = np.arange(10, dtype="float32").reshape(5, 2) / 10
history = model.fit(x, x.sum(1), batch_size=5, epochs=30, verbose=0)
report(first=history.history["loss"][0], last=history.history["loss"][-1])
"""


def test_fit_learns_in_the_scope_of_what_init_gave():
    result = run_alone(FIT)
    assert result["last"] < result["first"] / 10


NCCL = """
import os
import tfmulti
from tfmulti.communication import Communication, Nccl
from tfmulti.errors import UsageError
try:
    tfmulti.init("mirrored", communication=Communication(all_reduce="nccl"))
    error = ""
except UsageError as caught:
    error = str(caught)
tfmulti.init("mirrored", communication=Communication(
    nccl=Nccl(algorithm="Ring", nvls=0)))
report(error=error, algo=os.environ["NCCL_ALGO"],
       nvls=os.environ["NCCL_NVLS_ENABLE"])
"""


def test_settings_are_checked_exported_and_never_overwrite():
    result = run_alone(NCCL, NCCL_ALGO="Tree")
    assert "without a GPU" in result["error"]
    assert result["algo"] == "Tree" and result["nvls"] == "0"
    assert "NCCL_ALGO=Tree" in result["log"]
    assert "no effect" in result["log"]


OUTSIDE = """
import tfmulti
s = tfmulti.init("mirrored", replicas=2)
import keras, numpy as np
def made(name):
    m = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)], name=name)
    m.compile("sgd", "mse")
    return m
with s.scope():
    within = made("within")
x, y = np.ones((4, 2)), np.ones(4)
outside, guesser = made("outside"), made("guesser")
for model in (within, outside, outside):
    model.fit(x, y, verbose=0)
guesser.predict(x, verbose=0)
report()
"""


def test_a_model_outside_the_scope_is_told_once():
    """As it trains; nothing is said of others, and of one that predicts."""
    log = run_alone(OUTSIDE)["log"]
    (line,) = [text for text in log.splitlines() if "scope" in text]
    for words in ("'outside'", "one device", "2 replicas", "strategy.scope()"):
        assert words in line


UNKNOWN = """
import tfmulti
from tfmulti.errors import UsageError
def refused(**given):
    try:
        tfmulti.init(**given)
    except UsageError as error:
        return str(error)
report(workers=refused(workers=2), other=refused(replica=2))
"""


def test_an_unknown_argument_is_told_with_the_remedy():
    result = run_alone(UNKNOWN)
    assert "workers=2" in result["workers"]
    assert "--workers N" in result["workers"]
    assert "replica=2" in result["other"] and "replicas" in result["other"]


QUIET = """
import subprocess, sys
program = '''
import tfmulti
s = tfmulti.init("mirrored", replicas=2)
import keras, numpy as np
with s.scope():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)
'''
done = subprocess.run([sys.executable, "-c", program], env={
    k: v for k, v in os.environ.items() if k not in (
        "TF_CPP_MIN_LOG_LEVEL", "CUDA_VISIBLE_DEVICES")},
    capture_output=True, text=True, timeout=100)
report(code=done.returncode, err=done.stderr)
"""


def test_under_plain_python_init_and_fit_show_one_note_and_nothing_else():
    result = run_alone(QUIET)
    assert result["code"] == 0
    (line,) = result["err"].splitlines()
    assert line.startswith("tfmulti: No GPU: 2 replicas on logical CPU")


LATE = """
import tensorflow as tf
tf.constant(1.0) + 1.0
import tfmulti
from tfmulti.errors import UsageError
try:
    tfmulti.init("mirrored", replicas=2)
    report(error="")
except UsageError as error:
    report(error=str(error))
"""


def test_too_late_is_one_message_with_the_remedy():
    assert "above the first tensor" in run_alone(LATE)["error"]


LAUNCHED = """
from tfmulti.strategy import install, installed
job = install("mirrored", "CPU", 2)
import tfmulti
report(
    same=tfmulti.init() is job.strategy,
    replaced=tfmulti.init("mirrored", replicas=4) is job.strategy,
    record=installed() is job,
)
"""


def test_under_the_launcher_init_gives_the_jobs_strategy():
    result = run_alone(LAUNCHED)
    assert result["same"] and result["replaced"] and result["record"]
    assert result["log"].count("gets the job's strategy") == 1
