"""A list of hosts that a person gives, the same on each of them.

    --hosts=host1,host2             one worker each, port 2222
    --hosts=host1:5000,host1:5001   or with ports

Which of them this process is, is what `--worker_index` says, else its place
in whatever has started it, else the one entry that is this host's name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tfmulti.cluster.host_names import expand_hosts
from tfmulti.cluster.open_mpi import RANK, job_name
from tfmulti.cluster.ports import chosen_port, with_ports
from tfmulti.cluster.record import Cluster
from tfmulti.cluster.variables import whole
from tfmulti.errors import UsageError

PORT = 2222


def from_hosts(
    text: str,
    index: int | None,
    env: Mapping[str, str],
    own_names: Collection[str],
) -> Cluster:
    """Makes the cluster of a list of hosts.

    Args:
        text: Hosts with or without ports, separated by commas; "n[1-4]" is
            allowed.
        index: Which of them this is; None: to be found out.
        env: The environment of this process.
        own_names: The names and addresses of this host.

    Raises:
        UsageError: The list is wrong, or does not say which entry this is.
    """
    entries = _entries(text)
    workers = _addresses(entries, chosen_port(env, PORT))
    found, why = _place(index, workers, env, own_names)
    return Cluster(
        workers=workers,
        index=found,
        source="--hosts",
        evidence=why,
        identity=f"hosts {text} {job_name(env)}",
    )


def _entries(text: str) -> tuple[str, ...]:
    """Writes the list out; "[::1]:2222" is an address and no range."""
    if "[" not in text or ":" not in text:
        return expand_hosts(text)
    entries: list[str] = []
    for part in text.split(","):
        entries += [part] if ":" in part else expand_hosts(part)
    return tuple(entries)


def _addresses(entries: tuple[str, ...], port: int) -> tuple[str, ...]:
    bare = [entry for entry in entries if not _has_port(entry)]
    if bare and len(bare) < len(entries):
        raise UsageError(
            received=f"--hosts={','.join(entries)}",
            allowed="a port for every host, or for none",
            remedy=f"Add a port to {bare[0]}.",
        )
    return with_ports(entries, port) if bare else entries


def _has_port(entry: str) -> bool:
    return ":" in entry


def _place(
    index: int | None,
    workers: tuple[str, ...],
    env: Mapping[str, str],
    own_names: Collection[str],
) -> tuple[int, str]:
    if index is not None:
        return index, f"--worker_index={index}"
    for name in (RANK, "SLURM_PROCID"):
        if name in env:
            return whole(env, name), f"{name}={env[name]}"
    own = [
        place
        for place, address in enumerate(workers)
        if address.rpartition(":")[0].strip("[]") in own_names
    ]
    if len(own) == 1:
        return own[0], f"{workers[own[0]]} is this host"
    raise UsageError(
        received=f"--hosts={','.join(workers)} on {', '.join(own_names)}, "
        f"which is {len(own) or 'none'} of them",
        allowed="a list with this host's name once, or --worker_index",
        remedy="Give --worker_index, counted from 0.",
    )
