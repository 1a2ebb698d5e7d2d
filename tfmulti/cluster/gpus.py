"""Which GPUs a worker takes where several on its host see the same ones.

Slurm and mpirun may start several workers on a host and show all GPUs to each
of them. They then share them out in the order of their places, consecutive
ones to each.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfmulti.cluster.record import Cluster
from tfmulti.errors import UsageError


def own_gpus(names: Sequence[str], cluster: Cluster | None) -> tuple[str, ...]:
    """Gives this worker's share of the GPUs that it can see.

    Args:
        names: The GPUs, as CUDA_VISIBLE_DEVICES names them.
        cluster: The workers, seen from this one.

    Returns:
        An equal share; all where they are this worker's own.

    Raises:
        UsageError: There are fewer than workers.
    """
    if cluster is None or not names:
        return tuple(names)
    if len(names) < cluster.local_size:
        raise UsageError(
            received=f"{len(names)} GPUs for {cluster.local_size} workers on "
            f"this host ({cluster.source})",
            allowed="a GPU or more for each",
            remedy="Start fewer workers on a host, or set "
            "CUDA_VISIBLE_DEVICES=-1 to train on CPUs.",
        )
    share = len(names) // cluster.local_size
    first = cluster.local_index * share
    return tuple(names[first : first + share])
