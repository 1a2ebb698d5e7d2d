"""Ports for workers to which nobody has given any.

Slurm and MPI say who runs where, and nothing of ports. All workers must find
the same ones without talking, two jobs on one host must not meet, and no
other program may have got them by chance. So:

    below 32768     from there on Linux gives ports to whoever asks for any
    blocks of 16    one block a job, chosen by the job's number: jobs on one
                    host get different blocks until the numbers come round,
                    after 798 jobs
    in a block      a port for each worker that shares an address

Where two jobs meet all the same, the rendezvous says so before TensorFlow
starts, and TFMULTI_PORT gives another first port.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

from tfmulti.errors import UsageError

PORT_VARIABLE = "TFMULTI_PORT"

FIRST = 20_000
BLOCK = 16
BLOCKS = 798
# Concurrent steps of one job lie far from one another, and from the next job.
STEP_STRIDE = 397


def first_port(job: int, step: int = 0) -> int:
    """Gives the first port of a numbered job (and of a step in it)."""
    return FIRST + BLOCK * ((job + STEP_STRIDE * step) % BLOCKS)


def first_port_of_name(name: str) -> int:
    """Gives the first port of a job that has a name instead of a number."""
    return first_port(zlib.crc32(name.encode()))


def chosen_port(env: Mapping[str, str], otherwise: int) -> int:
    """Gives the first port that a person asks for, else `otherwise`.

    Raises:
        UsageError: TFMULTI_PORT is not a port.
    """
    text = env.get(PORT_VARIABLE, "").strip()
    if not text:
        return otherwise
    if not text.isdecimal() or not 1024 <= int(text) <= 65_535:
        raise UsageError(
            received=f"{PORT_VARIABLE}={text}",
            allowed="a port from 1024 to 65535",
            remedy=f"Correct {PORT_VARIABLE}, or unset it.",
        )
    return int(text)


def with_ports(hosts: Sequence[str], first: int) -> tuple[str, ...]:
    """Gives each worker an address: equal hosts get consecutive ports."""
    before: Counter[str] = Counter()
    addresses = []
    for host in hosts:
        name = f"[{host}]" if ":" in host else host
        addresses.append(f"{name}:{first + before[host]}")
        before[host] += 1
    return tuple(addresses)
