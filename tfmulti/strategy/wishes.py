"""What a script asked its own strategy for, against what the job gives.

Every wish is honoured or answered with one line: devices and cluster are the
job's; a reduction of the script's own counts unless the flags chose one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import cross_device_ops, mirrored_strategy

from tfmulti.communication import Communication
from tfmulti.strategy.process import Installed, Say


def honour(
    job: Installed,
    cls: type,
    constructor: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    say: Say,
) -> None:
    """Answers what a script's strategy was asked for.

    Args:
        job: What the job installed; its strategy's reduction may change.
        cls: The strategy's class in the script.
        constructor: Its `__init__`.
        args: What the script gives it.
        kwargs: And by name.
        say: Takes each line for the person.

    Raises:
        TypeError: The constructor does not take such arguments.
    """
    bound = inspect.signature(constructor).bind(None, *args, **kwargs)
    wishes = {k: v for k, v in bound.arguments.items() if v is not None}
    name = _answer_kind(job, cls, say)
    if wishes.get("devices"):
        _answer_devices(job, name, wishes["devices"], say)
    if "cluster_resolver" in wishes:
        _answer_cluster(job, wishes["cluster_resolver"], say)
    for argument in (
        "cross_device_ops",
        "communication_options",
        "communication",
    ):
        if argument in wishes:
            _answer_reduction(job, argument, wishes[argument], say)


def _answer_kind(job: Installed, cls: type, say: Say) -> str:
    mirrored = issubclass(cls, mirrored_strategy.MirroredStrategy)
    name = "MirroredStrategy" if mirrored else "MultiWorkerMirroredStrategy"
    if job.choice.kind != ("mirrored" if mirrored else "multiworker"):
        say(
            f"the script makes a {name}; it gets the strategy of this job "
            f"({job.choice})."
        )
    return name


def _answer_devices(
    job: Installed, name: str, devices: Sequence[str], say: Say
) -> None:
    wanted = [_short(device) for device in devices]
    given = [
        f"{job.choice.device}:{index}" for index in range(job.choice.replicas)
    ]
    if wanted != given:
        say(
            f"the script asks for a {name} on {', '.join(wanted)}; this job's "
            f"devices are used: {', '.join(given)}."
        )


def _answer_cluster(job: Installed, resolver: Any, say: Say) -> None:
    wanted = resolver.cluster_spec().as_dict()
    cluster = job.choice.cluster
    listed = wanted.get("chief", []) + wanted.get("worker", [])
    if listed and (cluster is None or tuple(listed) != cluster.workers):
        say(
            f"the script's cluster resolver names {', '.join(listed)}; this "
            "job's workers are used."
        )


def _answer_reduction(
    job: Installed, argument: str, value: Any, say: Say
) -> None:
    reason = _why_not(job, argument, value)
    if reason:
        say(f"the script's {argument} is not used: {reason}.")
        return
    extended = job.strategy.extended
    if argument == "cross_device_ops":
        extended._cross_device_ops = value
    elif argument == "communication":
        extended._communication_options = (
            tf.distribute.experimental.CommunicationOptions(
                implementation=value
            )
        )
    else:
        extended._communication_options = value


def _why_not(job: Installed, argument: str, value: Any) -> str:
    """Says why a reduction of the script's cannot be used; "" if it can."""
    fits = "mirrored" if argument == "cross_device_ops" else "multiworker"
    if job.choice.kind != fits:
        return f"this job is {job.choice}"
    if _flags_chose(job.communication):
        return "the flags chose how to reduce"
    if job.choice.device == "CPU" and _needs_gpus(value):
        return "it needs GPUs"
    return ""


def _flags_chose(communication: Communication) -> bool:
    """Whether any setting but NCCL's own was given."""
    return communication != Communication(
        nccl=communication.nccl, nccl_preset=communication.nccl_preset
    )


def _needs_gpus(value: Any) -> bool:
    implementation = getattr(value, "implementation", value)
    nccl = tf.distribute.experimental.CommunicationImplementation.NCCL
    return implementation == nccl or isinstance(
        value, cross_device_ops.NcclAllReduce
    )


def _short(device: str) -> str:
    spec = tf.DeviceSpec.from_string(
        device if device.startswith("/") else f"/{device}"
    )
    return f"{spec.device_type}:{spec.device_index or 0}"
