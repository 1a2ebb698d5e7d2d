"""N workers of M replicas each, on GPUs and on CPUs.

TensorFlow's MultiWorkerMirroredStrategy (2.21) falls short in two places,
both of which a subclass mends without copying its code:

- a worker without GPUs gets one CPU device, whatever logical devices it has
  (`CollectiveAllReduceExtended._initialize_local_devices`);
- `ReplicaContext.all_reduce`, the way that every gradient goes, does not see
  the strategy's own `bytes_per_pack`: its packs are cut by the options of the
  call alone (`_replica_ctx_all_reduce`, `CollectiveAllReduce._all_reduce`).

The result is a MultiWorkerMirroredStrategy for every `isinstance`.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import (
    collective_all_reduce_strategy as stock,
)
from tensorflow.python.distribute import distribute_lib
from tensorflow.python.distribute.collective_util import Options

from tfmulti.cluster import Cluster
from tfmulti.errors import UsageError


class MultiWorkerStrategy(stock.CollectiveAllReduceStrategy):
    """A MultiWorkerMirroredStrategy with the devices that the job names.

    Args:
        cluster: The workers, seen from this one.
        device: "GPU" or "CPU".
        replicas: Replicas of each worker.
        options: How to communicate.

    Raises:
        UsageError: TensorFlow was used already in this process.
    """

    def __init__(
        self,
        cluster: Cluster,
        device: str,
        replicas: int,
        options: Options,
    ):
        try:
            extended = _Extended(self, cluster, device, replicas, options)
        except RuntimeError as error:
            if "at program startup" not in str(error):
                raise
            raise _used_already() from error
        # Past the parent, whose __init__ would build the stock `extended`.
        distribute_lib.Strategy.__init__(self, extended)


class _Extended(stock.CollectiveAllReduceExtended):
    """The part of the strategy that chooses devices and reduces."""

    def __init__(
        self,
        container: MultiWorkerStrategy,
        cluster: Cluster,
        device: str,
        replicas: int,
        options: Options,
    ):
        # The parent's __init__ asks for them.
        self._job_device = device
        self._job_replicas = replicas
        super().__init__(container, _resolver(cluster), options)

    def _initialize_local_devices(
        self, cluster_resolver: Any, worker_device: str
    ) -> tuple[tuple[str, ...], str]:
        del cluster_resolver  # Knows GPUs at most.
        return (
            tuple(
                f"{worker_device}/device:{self._job_device}:{index}"
                for index in range(self._job_replicas)
            ),
            self._job_device,
        )

    def _replica_ctx_all_reduce(
        self, reduce_op: Any, value: Any, options: Options | None = None
    ) -> Any:
        return super()._replica_ctx_all_reduce(
            reduce_op, value, self._communication_options.merge(options)
        )


def _resolver(
    cluster: Cluster,
) -> tf.distribute.cluster_resolver.SimpleClusterResolver:
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": list(cluster.workers)}),
        task_type="worker",
        task_id=cluster.index,
        rpc_layer="grpc",
    )


def _used_already() -> UsageError:
    return UsageError(
        received="a multi-worker strategy after TensorFlow was used in this "
        "process",
        allowed="tfmulti.init() before anything else uses TensorFlow",
        remedy="Move tfmulti.init() up, above the first tensor, model or "
        "dataset.",
    )
