"""Real workers with several replicas each, on CPUs."""

from __future__ import annotations

import pytest

from tests.strategy.worker_processes import run_alone, run_workers

pytestmark = pytest.mark.workers

PRIMITIVES = """
import tfmulti
s = tfmulti.init(replicas=2)
import tensorflow as tf
ctx = lambda: tf.distribute.get_replica_context()
with s.scope():
    v = tf.Variable(3.0)
    counter = tf.Variable(
        0.0,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )

@tf.function
def step():
    def f():
        i = tf.cast(ctx().replica_id_in_sync_group, tf.float32)
        counter.assign_add(i + 1)
        total = ctx().all_reduce("sum", [i, tf.fill([3], i)])
        gathered = ctx().all_gather(tf.reshape(i, [1]), axis=0)
        v.assign(v + total[0])
        return i, total[1], gathered
    return s.run(f)

ids, totals, gathered = step()

def dataset_fn(c):
    d = tf.data.Dataset.range(8).shard(
        c.num_input_pipelines, c.input_pipeline_id)
    return d.batch(2)
seen = []
for batch in s.distribute_datasets_from_function(dataset_fn):
    seen += [x.numpy().tolist() for x in s.experimental_local_results(batch)]

local = s.experimental_local_results
report(
    is_stock=isinstance(s, tf.distribute.MultiWorkerMirroredStrategy),
    again=tfmulti.init() is s and tfmulti.init(replicas=2) is s,
    replicas=s.num_replicas_in_sync,
    ids=[float(x) for x in local(ids)],
    totals=[x.numpy().tolist() for x in local(totals)],
    gathered=[x.numpy().tolist() for x in local(gathered)],
    v=[float(x) for x in local(v)],
    counter=float(counter.read_value()),
    eager_mean=float(s.reduce("mean", ids, axis=None)),
    gather=s.gather(s.run(lambda: tf.reshape(v.read_value(), [1])),
                    axis=0).numpy().tolist(),
    seen=seen,
    devices=list(s.extended.worker_devices),
    task=[s.cluster_resolver.task_type, s.cluster_resolver.task_id],
)
"""


def test_two_workers_of_two_replicas_do_what_four_replicas_do():
    chief, other = run_workers(PRIMITIVES, 2)
    for result in (chief, other):
        assert result["is_stock"] and result["again"]
        assert result["replicas"] == 4
        assert result["totals"] == [[6.0, 6.0, 6.0]] * 2
        assert result["gathered"] == [[0.0, 1.0, 2.0, 3.0]] * 2
        assert result["v"] == [9.0, 9.0]
        assert result["counter"] == 1 + 2 + 3 + 4
        assert result["eager_mean"] == 1.5
        assert result["gather"] == [9.0] * 4
    assert chief["ids"] == [0.0, 1.0] and other["ids"] == [2.0, 3.0]
    assert sorted(sum(chief["seen"], [])) == [0, 2, 4, 6]
    assert sorted(sum(other["seen"], [])) == [1, 3, 5, 7]
    assert other["devices"] == [
        f"/job:worker/replica:0/task:1/device:CPU:{i}" for i in range(2)
    ]
    assert other["task"] == ["worker", 1]


TRAINING = """
import numpy as np
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 5)).astype("float32")
    return x, (x @ rng.normal(size=(5, 2))).astype("float32")

def train(s, start, count):
    import keras, tensorflow as tf
    x, y = data()
    with s.scope():
        model = keras.Sequential([
            keras.layers.Input((5,)),
            keras.layers.Dense(7, "tanh", kernel_initializer=
                keras.initializers.GlorotUniform(seed=1)),
            keras.layers.Dense(2, kernel_initializer=
                keras.initializers.GlorotUniform(seed=2))])
        optimizer = keras.optimizers.Adam(0.05)
        optimizer.build(model.trainable_variables)
    per_replica = 16 // s.num_replicas_in_sync

    def dataset_fn(c):
        d = tf.data.Dataset.from_tensor_slices(
            (x[start:start + count], y[start:start + count]))
        return d.batch(per_replica, drop_remainder=True).repeat()
    batches = iter(s.distribute_datasets_from_function(dataset_fn))

    @tf.function
    def step(batch):
        def f(bx, by):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((model(bx, training=True) - by) ** 2) / 16
            grads = tape.gradient(
                loss, [v.value for v in model.trainable_variables])
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
        s.run(f, args=batch)
    for _ in range(20):
        step(next(batches))
    return [w.tolist() for w in model.get_weights()]
"""
FOUR = (
    TRAINING
    + """
import tfmulti
s = tfmulti.init(replicas=2)
start = 8 * s.cluster_resolver.task_id
report(weights=train(s, start, 8))
"""
)
ALONE = (
    TRAINING
    + """
import tfmulti
report(weights=train(tfmulti.init("one"), 0, 16))
"""
)


def test_four_replicas_in_two_workers_train_as_one_device_does():
    import numpy as np

    chief, other = run_workers(FOUR, 2)
    alone = run_alone(ALONE)
    assert chief["weights"] == other["weights"]
    for ours, right in zip(chief["weights"], alone["weights"], strict=True):
        np.testing.assert_allclose(ours, right, rtol=2e-4, atol=2e-5)


PACKS = """
import tfmulti
from tfmulti.communication import Communication
s = tfmulti.init(communication=Communication(pack_mb=0.001))
import tensorflow as tf

@tf.function
def step():
    def f():
        values = [tf.ones([300]) for _ in range(6)]
        return tf.distribute.get_replica_context().all_reduce("sum", values)
    return s.run(f)

graph = step.get_concrete_function().graph
report(
    collectives=sum(
        op.type.startswith("CollectiveReduce")
        for op in graph.get_operations()
    ),
    first=step()[0].numpy().tolist()[:2],
)
"""


def test_pack_mb_cuts_the_gradients_of_a_step_into_packs():
    # 1200 bytes each: packs of more than 1000 bytes hold one.
    for result in run_workers(PACKS, 2):
        assert result["collectives"] == 6
        assert result["first"] == [2.0, 2.0]


LATE = """
import tensorflow as tf
tf.constant(1.0) + 1.0
import tfmulti
from tfmulti.errors import UsageError
try:
    tfmulti.init()
    report(error="")
except UsageError as error:
    report(error=str(error))
"""


def test_init_after_tensorflow_was_used_is_one_message_with_the_remedy():
    for result in run_workers(LATE, 2):
        assert "above the first tensor" in result["error"]
