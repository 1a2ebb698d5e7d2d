"""Gives this process the devices that its replicas run on.

TensorFlow fixes its devices the first time that it is used, so this comes
before everything else: before a tensor, a variable, a list of logical
devices. Afterwards it can only be checked that there are enough.

    GPU   the first N visible GPUs, each with memory that grows on demand, so
          that several processes can share a GPU's memory
    CPU   N logical devices of the one CPU: an emulation that lets the code
          of N replicas run anywhere, not a way to go faster
"""

from __future__ import annotations

import tensorflow as tf

from tfmulti.errors import UsageError
from tfmulti.units import counted


def configure_devices(device: str, replicas: int) -> tuple[str, ...]:
    """Prepares devices for the replicas of this process.

    Args:
        device: "GPU" or "CPU".
        replicas: How many replicas this process holds.

    Returns:
        A device name for each replica: "CPU:0", "CPU:1", ...

    Raises:
        UsageError: There are not so many devices, or TensorFlow was used
            already and has fixed fewer.
    """
    if device == "GPU":
        _configure_gpus(replicas)
    else:
        _configure_cpus(replicas)
    return tuple(f"{device}:{index}" for index in range(replicas))


def physical_gpus() -> int:
    """Counts this process's GPUs, without fixing its devices."""
    return len(tf.config.list_physical_devices("GPU"))


def _configure_gpus(replicas: int) -> None:
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) < replicas:
        raise UsageError(
            received=f"{replicas} replicas on GPUs",
            allowed=f"up to {len(gpus)}, the GPUs that this process sees",
            remedy="Ask for fewer replicas, or look at CUDA_VISIBLE_DEVICES.",
        )
    try:
        for gpu in gpus[:replicas]:
            tf.config.experimental.set_memory_growth(gpu, True)
        tf.config.set_visible_devices(gpus[:replicas], "GPU")
    except RuntimeError:
        _check_fixed_devices("GPU", replicas)


def _configure_cpus(replicas: int) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        if tf.config.list_physical_devices("GPU"):
            tf.config.set_visible_devices([], "GPU")
        present = tf.config.get_logical_device_configuration(cpu) or [None]
        if len(present) < replicas:
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * replicas
            )
    except RuntimeError:
        _check_fixed_devices("CPU", replicas)


def _check_fixed_devices(device: str, replicas: int) -> None:
    """TensorFlow was used already: its devices must do as they are."""
    fixed = len(tf.config.list_logical_devices(device))
    if fixed < replicas:
        raise UsageError(
            received=f"{replicas} replicas on {device}s after TensorFlow has "
            f"fixed {counted(fixed, device)} for this process",
            allowed="tfmulti.init() before anything else uses TensorFlow",
            remedy="Move tfmulti.init() up, above the first tensor, model "
            "or dataset.",
        )
