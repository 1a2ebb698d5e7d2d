"""The order in which the ways to learn the cluster are asked.

What a person or an operator wrote down for TensorFlow comes first. mpirun
comes before Slurm, through which it may have started its own daemons. What a
scheduler leaves in an interactive shell names one task, and so no cluster. A
further way is a file beside this one and a line in `RESOLVERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfmulti.cluster.ask import Ask, ask
from tfmulti.cluster.kubernetes import from_kubernetes
from tfmulti.cluster.open_mpi import from_open_mpi
from tfmulti.cluster.record import Cluster
from tfmulti.cluster.slurm import from_slurm
from tfmulti.cluster.tf_config import from_tf_config

Resolver = Callable[[Mapping[str, str], Ask], Cluster | None]

RESOLVERS: tuple[Resolver, ...] = (
    lambda env, ask: from_tf_config(env),
    from_open_mpi,
    from_slurm,
    lambda env, ask: from_kubernetes(env),
)


def resolve(
    env: Mapping[str, str],
    resolvers: tuple[Resolver, ...] = RESOLVERS,
    ask: Ask = ask,
) -> Cluster | None:
    """Finds the cluster that the environment names.

    Args:
        env: The environment of this process.
        resolvers: The ways to ask, in order.
        ask: Runs the commands that some of them need.

    Returns:
        The first answer, or None where nothing names a cluster: this process
        is then alone, or starts the workers itself.

    Raises:
        UsageError: The environment names a cluster, but wrongly.
    """
    for resolver in resolvers:
        cluster = resolver(env, ask)
        if cluster is not None:
            return cluster
    return None
