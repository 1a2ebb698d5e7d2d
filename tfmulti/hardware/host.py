"""The host around the GPUs: memory, limits, cores, clock, PCIe isolation.

Everything is read from text: files of /proc and /sys, and the output of a few
small programs. Each may be missing, in a container or on another system; what
cannot be known is None, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tfmulti.hardware.cgroups import Reader, group_folders
from tfmulti.hardware.cores import Cores, cgroup_quota

SHM_COMMAND = ("df", "-B1", "/dev/shm")
CLOCK_COMMAND = ("timedatectl", "show", "--property=NTPSynchronized")
NICS_COMMAND = ("ls", "/sys/class/infiniband")
LSPCI_COMMAND = ("lspci", "-vvv")

CPUFREQ = "/sys/devices/system/cpu/cpu0/cpufreq"
IOMMU_TYPE = "/sys/kernel/iommu_groups/0/type"
PCI_DEVICES = "/proc/bus/pci/devices"

NVIDIA_VENDOR = "10de"


@dataclass(frozen=True, kw_only=True)
class Host:
    """The host as a process of this user meets it; None: not known.

    Attributes:
        memory_bytes: RAM, or what the process's group may take of it.
        memory_limited: Whether that is a group's limit.
        cores: The cores that the process may use; None where unknown.
        machine_cores: The cores that the machine has.
        shm_bytes: Size of /dev/shm.
        memlock_bytes: Memory that may be pinned; None also for unlimited.
        open_files: Files that a process may have open.
        governor: The first core's frequency governor.
        cpufreq_driver: The driver behind it.
        clock_synchronised: Whether the clock follows a time server.
        virtual: Whether this is a virtual machine.
        iommu_type: "identity" (passed through), "DMA", "DMA-FQ"; None: off.
        acs_bridges: PCI bridges that may send GPU traffic up to the CPU.
        infiniband: InfiniBand and RoCE devices.
        nvidia_devices: NVIDIA's devices on the PCI bus.
    """

    memory_bytes: int | None = None
    memory_limited: bool = False
    cores: Cores | None = None
    machine_cores: int | None = None
    shm_bytes: int | None = None
    memlock_bytes: int | None = None
    open_files: int | None = None
    governor: str | None = None
    cpufreq_driver: str | None = None
    clock_synchronised: bool | None = None
    virtual: bool = False
    iommu_type: str | None = None
    acs_bridges: tuple[str, ...] = ()
    infiniband: tuple[str, ...] = ()
    nvidia_devices: int | None = None


def parse_host(read: Reader, said: Reader) -> Host:
    """Reads the host.

    Args:
        read: Gives the text of a file, or None.
        said: Gives what a command of this module printed, named by its words
            joined with spaces, or None.
    """
    memory, limited = _memory(read)
    status = read("/proc/self/status") or ""
    online = read("/sys/devices/system/cpu/online")
    return Host(
        memory_bytes=memory,
        memory_limited=limited,
        cores=_cores(status, read),
        machine_cores=_count(online) if online else None,
        shm_bytes=_shm(said(_name(SHM_COMMAND)) or ""),
        memlock_bytes=_limit(read, "Max locked memory"),
        open_files=_limit(read, "Max open files"),
        governor=_word(read(f"{CPUFREQ}/scaling_governor")),
        cpufreq_driver=_word(read(f"{CPUFREQ}/scaling_driver")),
        clock_synchronised=_clock(said(_name(CLOCK_COMMAND)) or ""),
        virtual="hypervisor" in (read("/proc/cpuinfo") or "").split(),
        iommu_type=_word(read(IOMMU_TYPE)),
        acs_bridges=acs_bridges(said(_name(LSPCI_COMMAND)) or ""),
        infiniband=tuple((said(_name(NICS_COMMAND)) or "").split()),
        nvidia_devices=_nvidia_devices(read(PCI_DEVICES)),
    )


def acs_bridges(text: str) -> tuple[str, ...]:
    """Lists the bridges of `lspci -vvv` with Access Control Services on.

    Then a switch sends what one GPU writes to another up to the CPU. Without
    root's rights lspci does not see the setting, and the answer is empty.
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    found = []
    for device in re.split(r"\n(?=[0-9a-f:]+[0-9a-f]{2}\.[0-7] )", text):
        address, _, kind = device.partition(" ")
        if "PCI bridge" in kind and re.search(r"ACSCtl:\s+SrcValid\+", device):
            found.append(address)
    return tuple(found)


def _name(command: Sequence[str]) -> str:
    return " ".join(command)


def _word(text: str | None) -> str | None:
    return (text or "").strip() or None


def _memory(read: Reader) -> tuple[int | None, bool]:
    """Gives RAM or the least limit on it, and whether that is a limit."""
    total = re.search(r"MemTotal:\s+(\d+) kB", read("/proc/meminfo") or "")
    if total is None:
        return None, False
    installed = int(total[1]) * 1024
    names = {1: "memory.limit_in_bytes", 2: "memory.max"}
    texts = [
        (read(f"{folder}/{names[version]}") or "").strip()
        for version, folder in group_folders("memory", read)
    ]
    # No limit: "max" in v2, close to 2^63 in v1.
    limit = min((int(t) for t in texts if t.isdecimal()), default=installed)
    return min(limit, installed), limit < installed


def _cores(status: str, read: Reader) -> Cores | None:
    allowed = re.search(r"Cpus_allowed_list:\s+(\S+)", status)
    if allowed is None:
        return None
    return Cores(affinity=_count(allowed[1]), quota=cgroup_quota(read))


def _count(ranges: str) -> int:
    """Counts the cores of a list such as "0-3,8"."""
    total = 0
    for part in ranges.strip().split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def _limit(read: Reader, name: str) -> int | None:
    """Gives a soft limit; None where it is unlimited or unknown."""
    text = read("/proc/self/limits") or ""
    found = re.search(rf"{name}\s+(\d+)", text)
    return int(found[1]) if found else None


def _shm(text: str) -> int | None:
    lines = text.splitlines()
    words = lines[1].split() if len(lines) > 1 else []
    return int(words[1]) if len(words) > 1 and words[1].isdecimal() else None


def _clock(text: str) -> bool | None:
    found = re.search(r"NTPSynchronized=(yes|no)", text)
    return found[1] == "yes" if found else None


def _nvidia_devices(text: str | None) -> int | None:
    """Counts NVIDIA's devices, each by its first function (00.0, not 00.1)."""
    if text is None:
        return None
    count = 0
    for line in text.splitlines():
        address, identity, *_ = line.split()
        first = int(address, 16) % 8 == 0
        count += first and identity.startswith(NVIDIA_VENDOR)
    return count
