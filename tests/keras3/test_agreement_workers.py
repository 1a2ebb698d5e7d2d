"""Two real workers see the same data, seeds and arguments, or say so."""

from __future__ import annotations

import pytest

from tests.strategy.worker_processes import run_workers

pytestmark = pytest.mark.workers

PROGRAM = """
import contextlib
import logging
import random
import numpy as np
np.random.seed(5)      # The person's: equal on all workers, so it stays.
import tfmulti
s = tfmulti.init()
import keras
import tensorflow as tf
from tfmulti.errors import UsageError
from tfmulti.keras3 import agreement, alike, seeds

w = s.cluster_resolver.task_id
found = {
    "gathered": agreement.gather(s, {"worker": w, "text": "x" * (9 * w)}, "a"),
    "chief": agreement.from_chief(s, [w, 0.1]),
    "any": [agreement.any_true(s, w == 1), agreement.any_true(s, False)],
    "equal": [agreement.all_equal(s, [1, -2]), agreement.all_equal(s, [w])],
    "exact": agreement.gather_numbers(s, [2**62 + w, -1], "b").tolist(),
    "seed": seeds.tensorflow_seed(),
    "python": random.random(),
    "numpy": np.random.rand(),
    "numpy_right": np.random.RandomState(5).rand(),
}
try:
    agreement.gather(s, 0, "fit" if w else "evaluate")
except UsageError as error:
    found["other_place"] = str(error)

N = 24
counts = tf.Variable(tf.zeros(N), trainable=False)
orders = []

class Seen(keras.layers.Layer):
    def call(self, t, training=False):
        if training:
            ids = tf.cast(t[:, 0], "int32")
            counts.assign_add(tf.reduce_sum(tf.one_hot(ids, N), 0))
        return t

with s.scope():
    model = keras.Sequential([keras.Input((1,)), Seen(),
                              keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
ids = np.arange(N, dtype="float32")[:, None]
half = ids[w * 12:(w + 1) * 12]

def dataset(a):
    return tf.data.Dataset.from_tensor_slices((a, np.zeros_like(a)))

class Sequence(keras.utils.PyDataset):
    def __init__(self, rows=ids):
        super().__init__()
        self.rows = rows
    def __len__(self):
        return len(self.rows) // 4
    def __getitem__(self, i):
        return self.rows[i * 4:i * 4 + 4], np.zeros((4, 1), "float32")

class Drawn(Sequence):
    def __getitem__(self, i):
        return drawn.choice(ids, 4), np.zeros((4, 1), "float32")

def seen(*args, **kwargs):
    counts.assign(tf.zeros(N))
    try:
        model.fit(*args, verbose=0, **kwargs)
    except UsageError as error:
        return str(error)
    return counts.numpy().tolist()

def off(d):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF)
    return d.with_options(options)

@contextlib.contextmanager
def caught():
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("tfmulti").addHandler(handler)
    yield lines
    logging.getLogger("tfmulti").removeHandler(handler)

y = np.zeros_like(ids)
cases = found["cases"] = {}
cases["numpy, default shuffle"] = seen(ids, y, batch_size=8)
cases["numpy, batch shuffle"] = seen(ids, y, batch_size=8, shuffle="batch")
cases["tf.data, unseeded shuffle"] = seen(dataset(ids).shuffle(N).batch(8))
cases["tf.data, uneven"] = seen(dataset(ids).shuffle(N).batch(7))
cases["shards of one's own"] = seen(off(dataset(half).batch(4)))
cases["PyDataset"] = seen(Sequence(), shuffle=True)

# Seeds that the person set, different on each worker.
keras.utils.set_random_seed(100 + w)
cases["numpy, seeds per worker"] = seen(ids, y, batch_size=8)
cases["PyDataset, seeds per worker"] = seen(Sequence(), shuffle=True)
found["seed_kept"] = seeds.tensorflow_seed() == 100 + w

errors = found["errors"] = {}
errors["tf.data, seeds per worker"] = seen(
    dataset(ids).shuffle(N, seed=w).batch(8))
errors["numpy, other halves"] = seen(half, np.zeros_like(half), batch_size=4)
errors["numpy, other sizes"] = seen(ids[: 20 + w], y[: 20 + w])
errors["tf.data, other halves"] = seen(dataset(half).batch(4))
errors["PyDataset, other halves"] = seen(Sequence(half))
errors["tf.data, other batches"] = seen(dataset(ids).batch(4 * (w + 1)))
errors["epochs"] = seen(ids, y, epochs=2 + w)
errors["steps"] = seen(ids, y, batch_size=8, steps_per_epoch=2 + w)

# Batches drawn at random, and a generator of a half: not refused.
drawn = np.random.default_rng(w)
found["drawn"] = sum(seen(Drawn()))
with caught() as lines:
    found["half"] = sum(seen((b for b in Sequence(half))))
found["lines"] = lines

# The order of each epoch, of this worker's rows.
keras.utils.set_random_seed(3)
class Order(keras.callbacks.Callback):
    reads_batch_logs = False
    def on_train_batch_end(self, batch, logs=None):
        orders.append(counts.numpy().nonzero()[0].tolist())
        counts.assign(tf.zeros(N))
cases["after it all"] = seen(ids, y, batch_size=8, epochs=3,
                             callbacks=[Order()])
found["orders"] = orders
report(**found)
"""


@pytest.fixture(scope="module")
def reports():
    return run_workers(PROGRAM, 2, timeout_s=150)


def test_the_primitives_give_everybody_the_same(reports):
    for result in reports:
        assert result["gathered"] == [
            {"worker": 0, "text": ""},
            {"worker": 1, "text": "x" * 9},
        ]
        assert result["chief"] == [0, 0.1]
        assert result["any"] == [True, False]
        assert result["equal"] == [True, False]
        assert result["exact"] == [[2**62, -1], [2**62 + 1, -1]]
        assert "worker 0 at evaluate, worker 1 at fit" in result["other_place"]


def test_unseeded_generators_are_seeded_alike_and_seeded_ones_kept(reports):
    chief, other = reports
    assert chief["seed"] == other["seed"] is not None
    assert chief["python"] == other["python"]
    for result in reports:
        assert result["numpy"] == result["numpy_right"]
        assert result["seed_kept"]


def test_each_example_is_seen_once_whatever_the_seeds(reports):
    chief, other = reports
    assert len(chief["cases"]) == 9
    for name, counts in chief["cases"].items():
        if name == "after it all":
            continue
        theirs = other["cases"][name]
        assert isinstance(counts, list), (name, counts)
        total = [a + b for a, b in zip(counts, theirs, strict=True)]
        assert total == [1.0] * 24, name


def test_every_epoch_is_shuffled_anew_and_divided_among_workers(reports):
    chief, other = (r["orders"] for r in reports)
    both = [sorted(a + b) for a, b in zip(chief, other, strict=True)]
    assert len(both) == 9
    epochs = [both[i : i + 3] for i in (0, 3, 6)]
    for epoch in epochs:
        rows = [row for batch in epoch for row in batch]
        assert sorted(rows) == list(range(24))
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]


def test_batches_drawn_at_random_are_used_and_a_generators_half_is_said(
    reports,
):
    for result in reports:
        assert result["drawn"] == 12.0
        assert result["half"] == 6.0
        (line,) = result["lines"]
        assert "generators" in line and "loses examples" in line


@pytest.mark.parametrize(
    "case, words",
    [
        ("tf.data, seeds per worker", ["ShuffleDataset", "_seed2", "seeds"]),
        ("numpy, other halves", ["array 0", "other values", "OFF"]),
        ("numpy, other sizes", ["array 0", "(20, 1)", "(21, 1)"]),
        ("tf.data, other halves", ["tensor of TensorSlice", "OFF"]),
        ("PyDataset, other halves", ["array 0 of batch 0", "other values"]),
        ("tf.data, other batches", ["number of batches", "6", "3"]),
        ("epochs", ["epochs = 2 on worker 0, 3 on worker 1"]),
        ("steps", ["steps_per_epoch = 2 on worker 0, 3 on worker 1"]),
    ],
)
def test_what_differs_is_named_on_both_workers(reports, case, words):
    messages = [r["errors"][case] for r in reports]
    assert messages[0] == messages[1]
    for word in words:
        assert word in messages[0], messages[0]
