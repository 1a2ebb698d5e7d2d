"""The CPU cores that this process may use.

`os.cpu_count()` counts the machine's. A process may be pinned to fewer
(affinity: taskset, Slurm), and a container may be allowed less time than its
cores could give (a cgroup quota: `docker --cpus 2`, Kubernetes limits). More
threads than that only get in each other's way.

cgroup v2 keeps the quota in cpu.max ("200000 100000" or "max 100000"), v1 in
two files; limits of the groups above hold as well, so the least one counts.
https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfmulti.hardware.cgroups import Reader, group_folders


@dataclass(frozen=True, kw_only=True)
class Cores:
    """What limits this process.

    Attributes:
        affinity: Cores that the scheduler may place it on.
        quota: Cores' worth of time that its cgroup grants; None: no limit.
    """

    affinity: int
    quota: float | None = None

    @property
    def usable(self) -> int:
        """Threads that can run at the same time, at least one."""
        if self.quota is None:
            return max(1, self.affinity)
        return max(1, min(self.affinity, math.ceil(self.quota)))


def usable_cores(
    affinity: int | None = None, read: Reader | None = None
) -> Cores:
    """Finds what limits this process.

    Args:
        affinity: Cores it may be placed on; None asks the system.
        read: Gives the text of a file, or None where it cannot be read.
    """
    if affinity is None:
        affinity = _affinity()
    return Cores(affinity=affinity, quota=cgroup_quota(read or _read))


def cgroup_quota(read: Reader) -> float | None:
    """Gives the least quota of this process's groups, in cores."""
    return min(_quotas(read), default=None)


def _quotas(read: Reader) -> Iterator[float]:
    for version, folder in group_folders("cpu", read):
        if version == 2:
            text = read(f"{folder}/cpu.max") or ""
        else:
            limit = read(f"{folder}/cpu.cfs_quota_us") or ""
            text = f"{limit} {read(f'{folder}/cpu.cfs_period_us') or ''}"
        numbers = text.split()
        # No limit: "max" in v2, -1 in v1.
        if len(numbers) == 2 and numbers[0].isdecimal():
            yield int(numbers[0]) / int(numbers[1])


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except OSError:
        return None
