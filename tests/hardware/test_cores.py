"""Affinity and cgroup quotas, of both versions, limit the cores."""

from __future__ import annotations

import os

import pytest

from tfmulti.hardware.cores import Cores, cgroup_quota, usable_cores


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"/proc/self/cgroup": "0::/\n"}, None),
        ({"/proc/self/cgroup": "0::/\n",
          "/sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"/proc/self/cgroup": "0::/a/b\n",
          "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
          "/sys/fs/cgroup/a/cpu.max": "300000 100000\n"}, 3.0),
        ({"/proc/self/cgroup": "0::/a/b\n",
          "/sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
          "/sys/fs/cgroup/a/cpu.max": "300000 100000\n"}, 3.0),
        # Version 1, its path that of the host, its mount the container's.
        ({"/proc/self/cgroup": "9:memory:/x\n4:cpu,cpuacct:/docker/7f\n",
          "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
          "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"/proc/self/cgroup": "4:cpu:/\n",
          "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
          "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, None),
    ],
)
def test_quota(files, quota):
    assert cgroup_quota(files.get) == quota


@pytest.mark.parametrize(
    ("affinity", "quota", "usable"),
    [(8, None, 8), (8, 2.0, 2), (8, 1.5, 2), (8, 0.5, 1), (2, 16.0, 2)],
)
def test_usable(affinity, quota, usable):
    assert Cores(affinity=affinity, quota=quota).usable == usable


def test_of_this_process():
    cores = usable_cores()
    assert cores.affinity == len(os.sched_getaffinity(0))
    assert 1 <= cores.usable <= cores.affinity
