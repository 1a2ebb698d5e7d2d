"""Open MPI 4 and 5: the ranks that mpirun starts, one worker each.

    mpirun -np 4 -H host1:2,host2:2 python -m tfmulti.run

mpirun tells each process its rank and nothing of the others, so where they
are has to come from somewhere:

    all ranks on this host   the loopback address
    --hosts                  the list, in the order of the ranks
    else mpi4py              each rank tells the others its name, in a child
                             process (`mpi_gather.py`): a launcher that has
                             started MPI could start no worker that uses it

https://docs.open-mpi.org/en/v5.0.x/tuning-apps/environment-var.html
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from tfmulti.cluster.ask import Ask
from tfmulti.cluster.one_host import LOOPBACK
from tfmulti.cluster.ports import (
    chosen_port,
    first_port_of_name,
    with_ports,
)
from tfmulti.cluster.record import Cluster
from tfmulti.cluster.variables import whole
from tfmulti.errors import UsageError

RANK = "OMPI_COMM_WORLD_RANK"
_GATHER = (sys.executable, "-m", "tfmulti.cluster.mpi_gather")


def from_open_mpi(env: Mapping[str, str], ask: Ask) -> Cluster | None:
    """Reads the cluster from the variables of mpirun.

    Args:
        env: The environment of this process.
        ask: Runs the program in which ranks tell one another their hosts.

    Returns:
        The ranks seen from this one, or None outside of mpirun or with a
        single rank.

    Raises:
        UsageError: The ranks run on several hosts, and nothing says where.
    """
    if RANK not in env or whole(env, "OMPI_COMM_WORLD_SIZE") < 2:
        return None
    rank, size = whole(env, RANK), whole(env, "OMPI_COMM_WORLD_SIZE")
    local = whole(env, "OMPI_COMM_WORLD_LOCAL_RANK")
    local_size = whole(env, "OMPI_COMM_WORLD_LOCAL_SIZE")
    name = job_name(env)
    hosts = [LOOPBACK] * size
    if local_size < size:
        hosts = _gathered(ask(_GATHER), size)
    seen = env.get("CUDA_VISIBLE_DEVICES", "")
    if seen and len(seen.split(",")) < local_size:
        # A wrapper script has given each rank GPUs of its own.
        share = {}
    else:
        share = {"local_index": local, "local_size": local_size}
    port = chosen_port(env, first_port_of_name(name))
    return Cluster(
        workers=with_ports(hosts, port),
        index=rank,
        source="Open MPI",
        evidence=f"rank {rank} of {size}, {local} of {local_size} on this "
        "host",
        identity=f"mpi {name}",
        **share,
    )


def job_name(env: Mapping[str, str]) -> str:
    """Gives what all ranks of one mpirun share, and no other has."""
    # Open MPI 5, then 4.
    return env.get("PMIX_NAMESPACE") or env.get("OMPI_MCA_ess_base_jobid", "")


def _gathered(answer: str | None, size: int) -> list[str]:
    try:
        hosts = json.loads(answer or "")
    except json.JSONDecodeError:
        hosts = None
    if isinstance(hosts, list) and len(hosts) == size:
        return hosts
    raise UsageError(
        received=f"{size} ranks of Open MPI on several hosts, which did not "
        "tell one another where they are",
        allowed="ranks with mpi4py, or a list of their hosts",
        remedy="Run pip install mpi4py, or give the host of each rank, in "
        "order, with --hosts.",
    )
