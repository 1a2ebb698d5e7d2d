"""A worker's own exception is known to the others, and soon."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.strategy.worker_processes import run_workers
from tfmulti.strategy import failure_of_another

PROGRAM = """
import sys, time
import numpy as np
import tfmulti
s = tfmulti.init()
import keras
from tfmulti.strategy import failure_of_another
w = s.cluster_resolver.task_id
with s.scope():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
failing = 1
class Fails(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2 and w == failing:
            raise ValueError("my data are broken")
begun = time.monotonic()
try:
    model.fit(np.ones((8, 1)), np.ones((8, 1)), epochs=4, verbose=0,
              callbacks=[Fails()])
except Exception as error:
    sys.excepthook(type(error), error, error.__traceback__)
    told = failure_of_another(error)
    report(own=type(error).__name__, told=told and str(told),
           took_s=time.monotonic() - begun)
"""


@pytest.mark.workers
@pytest.mark.parametrize("failing", [0, 1])
def test_the_cause_is_known_on_every_worker(failing):
    program = PROGRAM.replace("failing = 1", f"failing = {failing}")
    results = run_workers(program, 2, timeout_s=120)
    bad, good = results[failing], results[1 - failing]
    assert bad["own"] == "ValueError" and bad["told"] is None
    assert f"worker {failing} failed" in good["told"]
    assert good["told"].endswith("There: ValueError: my data are broken")
    # Heartbeats would take 8 s to stop.
    assert good["took_s"] - bad["took_s"] < 6


def test_only_words_of_another_worker_are_taken_for_such():
    words = (
        "worker 3 failed: OSError: a b The error could be from a previous "
        "operation."
    )
    text = (
        "Collective ops is aborted by: Error reported from "
        f"/job:worker/task:3: {words}"
    )
    found = failure_of_another(tf.errors.AbortedError(None, None, text))
    assert str(found).endswith("There: OSError: a b")
    for error in (
        ValueError(text),
        tf.errors.AbortedError(None, None, words),
        tf.errors.UnavailableError(None, None, "Socket closed"),
    ):
        assert failure_of_another(error) is None
