"""The answer to "who am I among whom": one frozen record.

All workers of a job hold the same list of addresses in the same order, and
differ only in `index`. Worker 0 is the chief: it alone writes what a run
leaves behind.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tfmulti.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The workers of a job, seen from one of them.

    Attributes:
        workers: One "host:port" for each worker, the chief's first.
        index: Which of them this process is.
        source: Where this was learnt, in words: "TF_CONFIG".
        evidence: What there says that this is its place.
        identity: What all workers of this run of the job know, and those of
            no other run; empty where nothing tells.
        local_index: The place of this process among the `local_size` that
            share the GPUs which it can see.
        local_size: How many share them; 1: they are its own.

    Raises:
        UsageError: An address has no port or occurs twice, or `index` is
            not that of a worker.
    """

    workers: tuple[str, ...]
    index: int
    source: str
    evidence: str = ""
    identity: str = ""
    local_index: int = 0
    local_size: int = 1

    def __post_init__(self) -> None:
        if not self.workers:
            raise UsageError(
                received=f"{self.source} with no workers",
                allowed="one host:port or more",
                remedy="List the address of every worker.",
            )
        for address in self.workers:
            check_address(address, self.source)
        address, times = Counter(self.workers).most_common(1)[0]
        if times > 1:
            raise UsageError(
                received=f"{self.source} with {address!r} {times} times",
                allowed="an address of its own for each worker",
                remedy="Give workers on one host different ports.",
            )
        if not 0 <= self.index < len(self.workers):
            raise UsageError(
                received=f"{self.source} with task index {self.index}",
                allowed=f"0 to {len(self.workers) - 1}, since the cluster "
                f"lists {len(self.workers)} worker(s)",
                remedy="Correct the index, or list the missing workers.",
            )

    @property
    def size(self) -> int:
        """The number of workers."""
        return len(self.workers)

    @property
    def chief(self) -> bool:
        """Whether this worker is the one that writes results."""
        return self.index == 0

    @property
    def address(self) -> str:
        """This worker's own "host:port"."""
        return self.workers[self.index]

    def at(self, index: int) -> Cluster:
        """Gives the same cluster, seen from another worker."""
        return dataclasses.replace(self, index=index)

    def to_json(self) -> dict[str, Any]:
        """Gives who was found, and why, as plain JSON values."""
        return {
            "workers": list(self.workers),
            "index": self.index,
            "source": self.source,
            "evidence": self.evidence,
        }

    def tf_config(self) -> str:
        """Renders what TensorFlow reads from the variable TF_CONFIG."""
        return json.dumps(
            {
                "cluster": {"worker": list(self.workers)},
                "task": {"type": "worker", "index": self.index},
            }
        )


def check_address(address: object, source: str) -> None:
    """Checks that `address` is "host:port" with a port that can be used.

    An IPv6 host stands in brackets: "[::1]:2222".

    Raises:
        UsageError: It is anything else.
    """
    if isinstance(address, str) and _is_host_and_port(address):
        return
    raise UsageError(
        received=f"{source} with the address {address!r}",
        allowed='"host:port" with a port from 1 to 65535',
        remedy='Write each worker as in "host1:2222".',
    )


def _is_host_and_port(address: str) -> bool:
    host, _, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not host or (":" in host and not bracketed):
        return False
    return port.isdecimal() and 1 <= int(port) <= 65535
