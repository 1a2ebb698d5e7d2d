"""Devices, reductions and strategies of one process."""

from __future__ import annotations

import numpy as np
import pytest

from tfmulti.communication import Communication
from tfmulti.errors import UsageError


def _mirrored(all_reduce, packs=None, replicas=2):
    from tfmulti.strategy import build_strategy

    return build_strategy(
        "mirrored",
        "CPU",
        replicas,
        communication=Communication(all_reduce=all_reduce, packs=packs),
    )


def test_devices_that_are_there_already_are_used(devices):
    from tfmulti.strategy import configure_devices

    assert configure_devices("CPU", 4) == tuple(devices)
    assert configure_devices("CPU", 1) == ("CPU:0",)


def test_too_few_devices_once_tensorflow_was_used_is_one_message(devices):
    import tensorflow as tf

    from tfmulti.strategy import configure_devices

    tf.config.list_logical_devices()
    with pytest.raises(UsageError, match="fixed 4 CPUs"):
        configure_devices("CPU", 5)


def test_gpus_that_are_not_there_are_refused(devices):
    from tfmulti.strategy import configure_devices

    with pytest.raises(UsageError, match="up to 0"):
        configure_devices("GPU", 1)


def test_one_is_the_default_strategy(devices):
    import tensorflow as tf

    from tfmulti.strategy import build_strategy

    strategy = build_strategy("one", "CPU", 1)
    assert strategy is tf.distribute.get_strategy()
    assert strategy.num_replicas_in_sync == 1


def test_multiworker_needs_a_cluster(devices):
    from tfmulti.strategy import build_strategy

    with pytest.raises(UsageError, match="TF_CONFIG"):
        build_strategy("multiworker", "CPU", 1)


@pytest.mark.parametrize(
    ("all_reduce", "packs"),
    [
        ("auto", None),
        ("one_device", None),
        ("hierarchical_copy", None),
        ("hierarchical_copy", 2),
    ],
)
def test_every_reduction_sums_over_the_replicas(devices, all_reduce, packs):
    import tensorflow as tf

    strategy = _mirrored(all_reduce, packs, replicas=4)
    assert strategy.num_replicas_in_sync == 4

    @tf.function
    def step():
        def f():
            context = tf.distribute.get_replica_context()
            i = tf.cast(context.replica_id_in_sync_group, tf.float32)
            return context.all_reduce("sum", [tf.fill([3], i), i * i])

        return strategy.run(f)

    vectors, squares = step()
    for vector in strategy.experimental_local_results(vectors):
        np.testing.assert_array_equal(vector, [6.0, 6.0, 6.0])
    for square in strategy.experimental_local_results(squares):
        assert float(square) == 14.0


def test_the_reduction_is_the_one_that_was_asked_for(devices):
    import tensorflow as tf

    from tfmulti.strategy.reduction import cross_device_ops

    def ops(all_reduce, device, packs=None):
        return cross_device_ops(
            Communication(all_reduce=all_reduce, packs=packs), device
        )

    one, tree = (
        tf.distribute.ReductionToOneDevice,
        tf.distribute.HierarchicalCopyAllReduce,
    )
    assert ops("auto", "GPU") is None
    assert isinstance(ops("auto", "CPU"), one)
    assert isinstance(ops("one_device", "GPU"), one)
    assert isinstance(ops("nccl", "GPU"), tf.distribute.NcclAllReduce)
    assert isinstance(ops("hierarchical_copy", "GPU"), tree)
    assert ops("nccl", "GPU", packs=3)._num_packs == 3
    assert ops("nccl", "GPU", packs=0)._num_packs == 0
    assert ops("nccl", "GPU")._num_packs == 1


def test_options_carry_every_setting(devices):
    from tfmulti.strategy.reduction import communication_options

    options = communication_options(
        Communication(all_reduce="ring", pack_mb=2, timeout_s=9)
    )
    assert options.implementation.value == "RING"
    assert options.bytes_per_pack == 2_000_000
    assert options.timeout_seconds == 9
    default = communication_options(Communication())
    assert default.implementation.value == "AUTO"
    assert default.bytes_per_pack == 0
    assert default.timeout_seconds is None


@pytest.fixture
def four_gpus(devices, monkeypatch):
    """TensorFlow as it would be with four GPUs; gives what it was told."""
    import tensorflow as tf

    gpus = [f"gpu{index}" for index in range(4)]
    told = {"growth": []}
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind: gpus if kind == "GPU" else ["cpu0"],
    )
    monkeypatch.setattr(
        tf.config,
        "set_visible_devices",
        lambda chosen, kind: told.update({kind: chosen}),
    )
    monkeypatch.setattr(
        tf.config.experimental,
        "set_memory_growth",
        lambda gpu, grows: told["growth"].append((gpu, grows)),
    )
    monkeypatch.setattr(
        tf.config, "get_logical_device_configuration", lambda cpu: None
    )
    monkeypatch.setattr(
        tf.config,
        "set_logical_device_configuration",
        lambda cpu, parts: told.update({cpu: len(parts)}),
    )
    return told


def test_only_the_gpus_in_use_are_visible_and_their_memory_grows(four_gpus):
    from tfmulti.strategy import configure_devices

    assert configure_devices("GPU", 2) == ("GPU:0", "GPU:1")
    assert four_gpus["GPU"] == ["gpu0", "gpu1"]
    assert four_gpus["growth"] == [("gpu0", True), ("gpu1", True)]


def test_replicas_on_cpus_hide_the_gpus_of_the_host(four_gpus):
    from tfmulti.strategy import configure_devices

    assert configure_devices("CPU", 3) == ("CPU:0", "CPU:1", "CPU:2")
    assert four_gpus["GPU"] == [] and four_gpus["cpu0"] == 3
