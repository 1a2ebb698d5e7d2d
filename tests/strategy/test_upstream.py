"""TensorFlow's faults that multi_worker.py mends, still there unpatched.

Each test expects the right behaviour of stock TensorFlow and is known to
fail: the day that one passes, the mending can go.
"""

from __future__ import annotations

import pytest

from tests.strategy.worker_processes import run_alone

pytestmark = pytest.mark.workers

STOCK = """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
s = tf.distribute.MultiWorkerMirroredStrategy(
    communication_options=tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=1000))

@tf.function
def step():
    def f():
        values = [tf.ones([300]) for _ in range(6)]
        return tf.distribute.get_replica_context().all_reduce("sum", values)
    return s.run(f)

operations = step.get_concrete_function().graph.get_operations()
report(
    replicas=s.num_replicas_in_sync,
    collectives=sum(
        op.type.startswith("CollectiveReduce") for op in operations),
)
"""


@pytest.fixture(scope="module")
def stock():
    return run_alone(STOCK)


@pytest.mark.xfail(strict=True, reason="one CPU device for each worker")
def test_stock_uses_every_logical_cpu_device(stock):
    assert stock["replicas"] == 2


@pytest.mark.xfail(strict=True, reason="bytes_per_pack of the strategy unread")
def test_stock_packs_gradients_as_the_strategy_was_told(stock):
    assert stock["collectives"] >= 6
