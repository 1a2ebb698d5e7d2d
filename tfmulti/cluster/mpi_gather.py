"""A child program: every rank of mpirun tells the others its host's name.

    python -m tfmulti.cluster.mpi_gather    -> ["host1", "host1", "host2"]

It needs mpi4py, and fails without. Each rank prints the whole list, in the
order of the ranks.
"""

from __future__ import annotations

import json
import socket


def main() -> None:
    """Prints the hosts of all ranks as JSON."""
    from mpi4py import MPI

    print(json.dumps(MPI.COMM_WORLD.allgather(socket.gethostname())))


if __name__ == "__main__":
    main()
