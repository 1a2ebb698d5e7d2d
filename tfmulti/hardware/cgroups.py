"""The control groups that limit this process.

A container or a batch system puts a process into a group with limits, and
each group above has limits that hold as well. Version 2 has one tree,
version 1 one for each controller:

    0::/a/b          ->  /sys/fs/cgroup/a/b, /sys/fs/cgroup/a, /sys/fs/cgroup
    4:cpu,cpuacct:/a ->  /sys/fs/cgroup/cpu,cpuacct/a, ...

https://docs.kernel.org/admin-guide/cgroup-v2.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

ROOT = "/sys/fs/cgroup"

Reader = Callable[[str], str | None]


def group_folders(controller: str, read: Reader) -> Iterator[tuple[int, str]]:
    """Lists the folders whose limits hold, as (cgroup version, folder).

    Args:
        controller: "cpu" or "memory".
        read: Gives the text of a file, or None where it cannot be read.
    """
    for line in (read("/proc/self/cgroup") or "").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            version, root = 2, ROOT
        elif controller in controllers.split(","):
            version, root = 1, f"{ROOT}/{controllers}"
        else:
            continue
        # In a container the path may be the host's, while the mount shows
        # only the container's own group, as the root: so that is read too.
        for folder in _with_parents(group):
            yield version, root + folder


def _with_parents(group: str) -> Iterator[str]:
    path = PurePosixPath(group)
    for folder in (path, *path.parents):
        yield "" if str(folder) == "/" else str(folder)
