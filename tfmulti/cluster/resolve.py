"""The order in which the ways to learn the cluster are asked.

What a person or an operator wrote down for TensorFlow comes first; a
scheduler's variables, which may be there by accident (an interactive
allocation), come after it. A further way is a file beside this one and a line
in `RESOLVERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfmulti.cluster.record import Cluster
from tfmulti.cluster.tf_config import from_tf_config

Resolver = Callable[[Mapping[str, str]], Cluster | None]

RESOLVERS: tuple[Resolver, ...] = (from_tf_config,)


def resolve(
    env: Mapping[str, str], resolvers: tuple[Resolver, ...] = RESOLVERS
) -> Cluster | None:
    """Finds the cluster that the environment names.

    Args:
        env: The environment of this process.
        resolvers: The ways to ask, in order.

    Returns:
        The first answer, or None where nothing names a cluster: this process
        is then alone, or starts the workers itself.

    Raises:
        UsageError: The environment names a cluster, but wrongly.
    """
    for resolver in resolvers:
        cluster = resolver(env)
        if cluster is not None:
            return cluster
    return None
