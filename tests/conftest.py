"""Fixtures that all tests share."""

from __future__ import annotations

import os

import pytest

# Set before anything imports TensorFlow: quiet, and no search for GPUs.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

LOGICAL_CPUS = 4

# TensorFlow, Keras and h5py set these when they are imported.
SET_AT_IMPORT = (
    "TF2_",
    "TF_",
    "KMP_",
    "TPU_ML_",
    "HDF5_PLUGIN_PATH",
    "ENABLE_RUNTIME_UPTIME_TELEMETRY",
)


@pytest.fixture(scope="session", autouse=True)
def devices() -> list[str]:
    """Four logical CPU devices of this process, "CPU:0" to "CPU:3".

    Made before any test, since TensorFlow takes them only until its first
    use.
    """
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * LOGICAL_CPUS
    )
    return [f"CPU:{i}" for i in range(LOGICAL_CPUS)]


@pytest.fixture(autouse=True)
def _environment_is_left_as_found():
    """Fails a test that leaks or loses an environment variable."""
    before = dict(os.environ)
    yield
    after = dict(os.environ)
    ours = {"PYTEST_CURRENT_TEST"}
    changed = {
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    } - ours
    changed = {n for n in changed if not n.startswith(SET_AT_IMPORT)}
    assert not changed, f"environment changed by the test: {sorted(changed)}"
