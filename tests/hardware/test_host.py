"""The host is read right, and what is missing stays unknown."""

from __future__ import annotations

import pytest

from tfmulti.hardware.host import Host, acs_bridges, parse_host

LSPCI = """\
00:01.1 PCI bridge: AMD Starship/Matisse GPP Bridge (prog-if 00)
\t\tACSCap:\tSrcValid+ TransBlk+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+
0000:41:00.0 PCI bridge: Broadcom PEX880xx (prog-if 00)
\t\tACSCtl: SrcValid- TransBlk-
43:00.0 Ethernet controller: Mellanox ConnectX-6
\t\tACSCtl:\tSrcValid+ TransBlk-
44:00.0 PCI bridge: Broadcom PEX880xx (prog-if 00)
\tCapabilities: <access denied>
"""


def _nothing(name: str) -> None:
    return None


def _host(files: dict[str, str], said: dict[str, str] | None = None) -> Host:
    return parse_host(files.get, (said or {}).get)


def test_nothing_known():
    assert parse_host(_nothing, _nothing) == Host()


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/", {}, (2**20 * 1024, False)),
        ("0::/", {"/memory.max": "max\n"}, (2**20 * 1024, False)),
        ("0::/a/b", {"/a/memory.max": "4096\n"}, (4096, True)),
        (
            "0::/a/b",
            {"/a/b/memory.max": "9000\n", "/memory.max": "8000\n"},
            (8000, True),
        ),
        (
            "7:memory:/x",
            {"/memory/x/memory.limit_in_bytes": "9223372036854771712\n"},
            (2**20 * 1024, False),
        ),
        (
            "7:memory:/x",
            {"/memory/memory.limit_in_bytes": "5000\n"},
            (5000, True),
        ),
    ],
)
def test_memory(group, files, expected):
    known = {f"/sys/fs/cgroup{path}": text for path, text in files.items()}
    known["/proc/meminfo"] = "MemTotal:        1048576 kB\nMemFree: 1 kB\n"
    known["/proc/self/cgroup"] = group + "\n"
    host = _host(known)
    assert (host.memory_bytes, host.memory_limited) == expected


def test_cores():
    host = _host(
        {
            "/proc/self/status": "Cpus_allowed_list:\t0-3,8,10-11\n",
            "/sys/devices/system/cpu/online": "0-63\n",
            "/proc/self/cgroup": "0::/\n",
            "/sys/fs/cgroup/cpu.max": "250000 100000\n",
        }
    )
    assert host.cores is not None
    assert (host.cores.affinity, host.cores.quota) == (7, 2.5)
    assert host.machine_cores == 64


def test_limits():
    text = (
        "Limit                     Soft Limit   Hard Limit   Units\n"
        "Max open files            1024         524288       files\n"
        "Max locked memory         unlimited    unlimited    bytes\n"
    )
    host = _host({"/proc/self/limits": text})
    assert (host.open_files, host.memlock_bytes) == (1024, None)


def test_programs():
    host = _host(
        {},
        {
            "df -B1 /dev/shm": "Filesystem 1B-blocks Used\nshm 67108864 0\n",
            "timedatectl show --property=NTPSynchronized": (
                "NTPSynchronized=no\n"
            ),
            "ls /sys/class/infiniband": "mlx5_0\nmlx5_1\n",
            "lspci -vvv": LSPCI,
        },
    )
    assert host.shm_bytes == 64 * 2**20
    assert host.clock_synchronised is False
    assert host.infiniband == ("mlx5_0", "mlx5_1")
    assert host.acs_bridges == ("00:01.1",)


def test_only_bridges_count_for_acs():
    assert acs_bridges(LSPCI) == ("00:01.1",)
    assert acs_bridges("") == ()


def test_devices_are_counted_by_their_first_function():
    text = "0100\t10de2204\t0\n0101\t10de1aef\t0\n0200\t80860d57\t0\n"
    assert _host({"/proc/bus/pci/devices": text}).nvidia_devices == 1
    assert _host({"/proc/bus/pci/devices": ""}).nvidia_devices == 0
