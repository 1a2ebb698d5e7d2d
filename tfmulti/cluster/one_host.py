"""Several workers on this one host, started by ourselves.

They talk over the loopback address, never a host name: a name may resolve to
an address on which nobody listens, and what stays on this host needs no name.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfmulti.cluster.record import Cluster

LOOPBACK = "127.0.0.1"


def on_this_host(ports: Sequence[int]) -> Cluster:
    """Gives the cluster of one worker for each port, seen from the chief."""
    return Cluster(
        workers=tuple(f"{LOOPBACK}:{port}" for port in ports),
        index=0,
        source=f"{len(ports)} worker(s) started on this host",
    )
