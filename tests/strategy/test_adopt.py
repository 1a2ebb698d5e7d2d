"""Scripts with a strategy of their own get the job's, and can be undone."""

from __future__ import annotations

import contextlib

import pytest

from tests.strategy.worker_processes import run_workers
from tfmulti.cluster import Cluster
from tfmulti.communication import Communication, Nccl
from tfmulti.errors import UsageError


def _job(kind="mirrored", communication=None, replicas=2):
    """A job in this process; the strategy of "multiworker" is a stand-in."""
    import tensorflow as tf

    from tfmulti.strategy import Installed, build_strategy
    from tfmulti.strategy.choose import Choice

    cluster = Cluster(workers=("a:1", "b:1"), index=0, source="TF_CONFIG")
    built = "one" if kind == "one" else "mirrored"
    strategy = build_strategy(built, "CPU", replicas)
    if kind == "multiworker":
        # Only its identity matters here; real workers are tested below.
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return Installed(
        strategy=strategy,
        choice=Choice(
            kind=kind,
            device="CPU",
            replicas=replicas,
            cluster=cluster if kind == "multiworker" else None,
        ),
        communication=communication or Communication(),
    )


@contextlib.contextmanager
def _adopted(job):
    from tfmulti.strategy import adopted

    lines = []
    with adopted(job, say=lines.append):
        yield lines


def test_every_import_path_gives_the_jobs_strategy(devices):
    import tensorflow as tf
    from tensorflow.python.distribute.mirrored_strategy import (
        MirroredStrategy,
    )

    job = _job()
    with _adopted(job) as lines:
        assert tf.distribute.get_strategy() is job.strategy
        assert tf.distribute.MirroredStrategy() is job.strategy
        assert MirroredStrategy() is job.strategy
        assert lines == []
        other = tf.distribute.MultiWorkerMirroredStrategy()
        experimental = tf.distribute.experimental.MultiWorkerMirroredStrategy()
        assert other is job.strategy and experimental is job.strategy
        assert len(lines) == 2
        assert all("MultiWorkerMirroredStrategy" in line for line in lines)


def test_everything_is_as_before_afterwards(devices):
    import tensorflow as tf
    from tensorflow.python.framework import ops

    stack = type(ops._default_graph_stack)
    init, reset = tf.distribute.MirroredStrategy.__init__, stack.reset
    job = _job()
    with pytest.raises(ZeroDivisionError), _adopted(job):
        assert tf.distribute.MirroredStrategy.__init__ is not init
        raise ZeroDivisionError
    assert tf.distribute.MirroredStrategy.__init__ is init
    assert stack.reset is reset
    assert not tf.distribute.has_strategy()
    own = tf.distribute.MirroredStrategy(["CPU:1"])
    assert own is not job.strategy and own.num_replicas_in_sync == 1
    assert tf.distribute.OneDeviceStrategy("CPU:0").num_replicas_in_sync == 1

    class Mine(tf.distribute.MirroredStrategy):
        pass

    assert Mine(devices=["CPU:1"]).num_replicas_in_sync == 1


def test_a_model_of_a_script_is_mirrored_with_or_without_a_scope(devices):
    import tensorflow as tf

    job = _job()
    with _adopted(job):
        bare = tf.Variable(1.0)
        with tf.distribute.MirroredStrategy().scope():
            scoped = tf.Variable(1.0)
        tf.distribute.experimental_set_strategy(job.strategy)
        again = tf.Variable(1.0)
    for variable in (bare, scoped, again):
        assert len(variable.values) == 2
    assert not hasattr(tf.Variable(1.0), "values")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["CPU:0", "CPU:1"], False),
        (["/cpu:0", "/device:CPU:1"], False),
        (["GPU:0", "GPU:1"], True),
        (["CPU:0", "CPU:1", "CPU:2"], True),
    ],
)
def test_other_devices_are_answered_with_one_line(devices, asked, said):
    import tensorflow as tf

    job = _job()
    with _adopted(job) as lines:
        assert tf.distribute.MirroredStrategy(asked) is job.strategy
        assert tf.distribute.MirroredStrategy(devices=asked) is job.strategy
    assert len(lines) == 2 * said
    if said:
        assert "this job's devices are used: CPU:0, CPU:1" in lines[0]


def test_mirrored_in_a_multi_worker_job_gets_the_clusters(devices):
    import tensorflow as tf

    job = _job("multiworker")
    with _adopted(job) as lines:
        assert tf.distribute.MirroredStrategy() is job.strategy
        (line,) = lines
        assert "MirroredStrategy" in line
        assert "2 replicas on CPUs in each of 2 workers" in line
        assert tf.distribute.MultiWorkerMirroredStrategy() is job.strategy
        assert len(lines) == 1


def test_another_cluster_than_the_jobs_is_answered_with_one_line(devices):
    import tensorflow as tf

    def resolver(*workers):
        return tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": list(workers)}), "worker", 0
        )

    job = _job("multiworker")
    with _adopted(job) as lines:
        tf.distribute.MultiWorkerMirroredStrategy(resolver("a:1", "b:1"))
        assert lines == []
        tf.distribute.MultiWorkerMirroredStrategy(resolver("c:1", "d:1"))
        assert len(lines) == 1 and "c:1, d:1" in lines[0]


def test_a_reduction_of_the_scripts_own_is_used(devices):
    import tensorflow as tf

    mine = tf.distribute.HierarchicalCopyAllReduce(num_packs=2)
    job = _job(communication=Communication(nccl=Nccl(debug="WARN")))
    with _adopted(job) as lines:
        strategy = tf.distribute.MirroredStrategy(cross_device_ops=mine)
        assert strategy.extended._cross_device_ops is mine
    assert lines == []


@pytest.mark.parametrize(
    ("kind", "flags", "make", "reason"),
    [
        (
            "mirrored",
            Communication(all_reduce="one_device"),
            lambda d: d.HierarchicalCopyAllReduce(),
            "the flags chose",
        ),
        ("mirrored", None, lambda d: d.NcclAllReduce(), "needs GPUs"),
        (
            "multiworker",
            None,
            lambda d: d.ReductionToOneDevice(),
            "multiworker",
        ),
    ],
)
def test_a_reduction_that_cannot_be_used_is_said(
    devices, kind, flags, make, reason
):
    import tensorflow as tf

    job = _job(kind, flags)
    before = job.strategy.extended._cross_device_ops
    with _adopted(job) as lines:
        tf.distribute.MirroredStrategy(cross_device_ops=make(tf.distribute))
    assert job.strategy.extended._cross_device_ops is before
    assert "cross_device_ops is not used" in lines[-1]
    assert reason in lines[-1]


def test_options_of_the_scripts_own_are_used_or_answered(devices):
    import tensorflow as tf

    experimental = tf.distribute.experimental
    packs = experimental.CommunicationOptions(bytes_per_pack=5)
    nccl = experimental.CommunicationOptions(
        implementation=experimental.CommunicationImplementation.NCCL
    )
    job = _job("multiworker")
    with _adopted(job) as lines:
        tf.distribute.MultiWorkerMirroredStrategy(communication_options=packs)
        assert job.strategy.extended._communication_options is packs
        assert lines == []
        tf.distribute.MultiWorkerMirroredStrategy(communication_options=nccl)
        assert job.strategy.extended._communication_options is packs
        assert "needs GPUs" in lines[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.OneDeviceStrategy("/cpu:0"),
        lambda d: d.experimental.CentralStorageStrategy(),
        lambda d: d.ParameterServerStrategy(None),
        lambda d: d.TPUStrategy(),
    ],
)
def test_other_kinds_are_refused_with_the_remedy(devices, make):
    import tensorflow as tf

    with _adopted(_job()), pytest.raises(UsageError, match="--strategy one"):
        make(tf.distribute)


def test_a_subclass_of_the_scripts_own_is_refused_by_name(devices):
    import tensorflow as tf

    class MyStrategy(tf.distribute.MirroredStrategy):
        pass

    with _adopted(_job()), pytest.raises(UsageError, match="MyStrategy"):
        MyStrategy()


def test_one_replica_gives_the_default_strategy_and_leaves_others(devices):
    import tensorflow as tf

    job = _job("one", replicas=1)
    with _adopted(job) as lines:
        strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
        assert strategy is tf.distribute.get_strategy()
        assert any("one replica" in line for line in lines)
        with strategy.scope():
            assert not hasattr(tf.Variable(1.0), "values")
        other = tf.distribute.OneDeviceStrategy("CPU:0")
        assert other.num_replicas_in_sync == 1


def test_wrong_arguments_are_still_a_type_error(devices):
    import tensorflow as tf

    with _adopted(_job()), pytest.raises(TypeError):
        tf.distribute.MirroredStrategy(device=["CPU:0"])


def test_clear_session_keeps_the_strategy(devices):
    import keras
    import tensorflow as tf

    job = _job()
    with _adopted(job):
        keras.backend.clear_session()
        assert tf.distribute.get_strategy() is job.strategy
        with tf.distribute.MirroredStrategy().scope():
            keras.utils.clear_session()
            assert len(tf.Variable(1.0).values) == 2
        assert len(tf.Variable(1.0).values) == 2
    assert not tf.distribute.has_strategy()
    keras.backend.clear_session()
    assert not tf.distribute.has_strategy()


@pytest.mark.xfail(strict=True, reason="keras: clear_session drops it")
def test_stock_clear_session_keeps_a_strategy_that_was_set(devices):
    import keras
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    tf.distribute.experimental_set_strategy(strategy)
    try:
        keras.backend.clear_session()
        assert tf.distribute.get_strategy() is strategy
    finally:
        tf.distribute.experimental_set_strategy(None)


SCRIPT = """
import os
from tfmulti.cluster import resolve
from tfmulti.strategy import adopted, install
job = install("multiworker", "CPU", 2, resolve(os.environ))
import tensorflow as tf
lines = []
with adopted(job, say=lines.append):
    mirrored = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    own = tf.distribute.MultiWorkerMirroredStrategy()
    with mirrored.scope():
        v = tf.Variable(float(own.cluster_resolver.task_id + 5))

    @tf.function
    def step():
        def f():
            i = tf.distribute.get_replica_context().replica_id_in_sync_group
            v.assign_add(tf.distribute.get_replica_context().all_reduce(
                "sum", tf.cast(i, tf.float32)))
        own.run(f)
    step()
report(same=mirrored is own is job.strategy, lines=lines,
       v=[float(x) for x in v.values])
"""


@pytest.mark.workers
def test_real_workers_adopt_a_mirrored_script():
    for result in run_workers(SCRIPT, 2):
        assert result["same"]
        assert result["v"] == [11.0, 11.0]  # The chief's 5, and 0+1+2+3.
        assert len(result["lines"]) == 2
        assert "2 replicas on CPUs in each of 2 workers" in result["lines"][0]
        assert "GPU:0, GPU:1" in result["lines"][1]
