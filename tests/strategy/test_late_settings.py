"""Device settings of a script that TensorFlow would refuse by now."""

from __future__ import annotations

import pytest


def _settings(tf):
    cpu = tf.config.list_physical_devices("CPU")[0]
    three = [tf.config.LogicalDeviceConfiguration()] * 3
    return {
        "set_visible_devices": lambda: tf.config.set_visible_devices(
            [], "CPU"
        ),
        "set_logical_device_configuration": lambda: (
            tf.config.set_logical_device_configuration(cpu, three)
        ),
        "inter_op_parallelism_threads": lambda: (
            tf.config.threading.set_inter_op_parallelism_threads(7)
        ),
        "intra_op_parallelism_threads": lambda: (
            tf.config.threading.set_intra_op_parallelism_threads(7)
        ),
    }


@pytest.fixture
def started(devices):
    import tensorflow as tf

    tf.constant(0)
    return tf


@pytest.mark.parametrize(
    "name",
    [
        "set_visible_devices",
        "set_logical_device_configuration",
        "inter_op_parallelism_threads",
        "intra_op_parallelism_threads",
    ],
)
def test_a_late_setting_is_left_out_with_one_line(started, name):
    from tfmulti.strategy.late_settings import late_settings_left_out

    setting = _settings(started)[name]
    lines = []
    with late_settings_left_out(lines.append):
        setting()
        setting()
    assert len(lines) == 1
    assert f"tf.config {name} has no effect." in lines[0]
    assert "--replicas" in lines[0] or "TF_NUM_" in lines[0]
    with pytest.raises(RuntimeError):
        setting()


def test_getters_work_and_are_put_back(started):
    from tfmulti.strategy.late_settings import late_settings_left_out

    threads = started.config.threading
    before = threads.get_inter_op_parallelism_threads()
    with late_settings_left_out(print):
        assert threads.get_inter_op_parallelism_threads() == before
    assert threads.get_inter_op_parallelism_threads() == before
