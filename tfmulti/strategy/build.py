"""The kind of job, devices and settings -> a strategy.

    one          TensorFlow's default strategy: Keras's own code runs
                 untouched
    mirrored     tf.distribute.MirroredStrategy over this process's devices
    multiworker  `MultiWorkerStrategy` over the cluster
"""

from __future__ import annotations

import os

import tensorflow as tf

from tfmulti.cluster import Cluster
from tfmulti.communication import Communication
from tfmulti.errors import UsageError
from tfmulti.strategy.multi_worker import MultiWorkerStrategy
from tfmulti.strategy.reduction import (
    communication_options,
    cross_device_ops,
)
from tfmulti.strategy.signals import sigterm_kept

KINDS = ("one", "mirrored", "multiworker")


def build_strategy(
    kind: str,
    device: str,
    replicas: int,
    cluster: Cluster | None = None,
    communication: Communication | None = None,
) -> tf.distribute.Strategy:
    """Builds the strategy of a job.

    `configure_devices` must have been called, and for "multiworker" nothing
    else may have used TensorFlow in this process.

    Args:
        kind: One of `KINDS`.
        device: "GPU" or "CPU".
        replicas: Replicas of this worker.
        cluster: The workers; needed for "multiworker" only.
        communication: How to reduce gradients; None: TensorFlow's choice.

    Raises:
        UsageError: "multiworker" without a cluster, or too late.
    """
    settings = communication or Communication()
    if kind == "one":
        return tf.distribute.get_strategy()
    if kind == "mirrored":
        if not os.environ.get("TF_CONFIG", "{}").strip():
            # Empty means unset; TensorFlow would read it as JSON.
            del os.environ["TF_CONFIG"]
        return tf.distribute.MirroredStrategy(
            [f"{device}:{index}" for index in range(replicas)],
            cross_device_ops=cross_device_ops(settings, device),
        )
    if cluster is None:
        raise UsageError(
            received="a multi-worker strategy without a cluster",
            allowed="TF_CONFIG or a scheduler that names the workers",
            remedy="Set TF_CONFIG on each worker, or start the job with "
            "python -m tfmulti.run --strategy multiworker --workers N.",
        )
    with sigterm_kept():
        return MultiWorkerStrategy(
            cluster, device, replicas, communication_options(settings)
        )
