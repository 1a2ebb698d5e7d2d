"""How the GPUs of a host are joined: links, switches, NUMA nodes, NICs.

`nvidia-smi topo -m` prints a matrix of path kinds, from near to far:

    NV12   12 NVLinks          PHB    through the CPU's host bridge
    PIX    one PCIe switch     NODE   between host bridges of a NUMA node
    PXB    several switches    SYS    between CPU sockets

`nvidia-smi topo -p2p r` prints one in the same form that says whether GPUs
may read each other's memory ("OK", else why not), and `nvidia-smi nvlink
--status` lists each GPU's links.

https://docs.nvidia.com/deploy/nvidia-smi/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PATHS_COMMAND = ("nvidia-smi", "topo", "-m")
PEERS_COMMAND = ("nvidia-smi", "topo", "-p2p", "r")
NVLINK_COMMAND = ("nvidia-smi", "nvlink", "--status")

# nvidia-smi underlines the first line, also where it is not a terminal's.
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_DEVICE = re.compile(r"(GPU\d+|NIC\d+|mlx\w+)$")


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A matrix of `nvidia-smi topo`.

    Attributes:
        cells: From (row, column), as "GPU0" or "mlx5_1", to the cell's word.
        numa_nodes: From a GPU's name to the NUMA node that it says is near.
    """

    cells: Mapping[tuple[str, str], str]
    numa_nodes: Mapping[str, str]

    @property
    def gpus(self) -> tuple[str, ...]:
        """The names of the GPUs, in order."""
        rows = {row for row, _ in self.cells if row.startswith("GPU")}
        return tuple(sorted(rows, key=lambda name: int(name[3:])))

    @property
    def gpu_pairs(self) -> tuple[tuple[str, str, str], ...]:
        """Each pair of GPUs once, with its word."""
        return tuple(
            (a, b, self.cells[a, b])
            for a in self.gpus
            for b in self.gpus
            if int(a[3:]) < int(b[3:]) and (a, b) in self.cells
        )


@dataclass(frozen=True, kw_only=True)
class NvLinks:
    """The NVLinks of one GPU.

    Attributes:
        gpu: Its index.
        up: The links that carry data, by number.
        down: Those that do not.
    """

    gpu: int
    up: tuple[int, ...]
    down: tuple[int, ...]


def parse_matrix(text: str) -> Matrix | None:
    """Reads a matrix of `nvidia-smi topo`; None where there is none."""
    text = _ESCAPES.sub("", text)
    # A legend below says which device "NIC0" is.
    devices = dict(re.findall(r"^\s+(NIC\d+): (\S+)", text, re.MULTILINE))
    columns: list[str] = []
    cells: dict[tuple[str, str], str] = {}
    numa: dict[str, str] = {}
    for line in text.splitlines():
        words = line.split()
        if not words or not _DEVICE.match(words[0]):
            continue
        if not columns:
            names = filter(_DEVICE.match, words)
            columns = [devices.get(name, name) for name in names]
            continue
        row = devices.get(words[0], words[0])
        values, rest = words[1 : 1 + len(columns)], words[1 + len(columns) :]
        cells |= {
            (row, column): value
            for column, value in zip(columns, values, strict=False)
        }
        if row.startswith("GPU") and len(rest) >= 2:
            numa[row] = rest[1]
    return Matrix(cells=cells, numa_nodes=numa) if cells else None


def parse_nvlink(text: str) -> tuple[NvLinks, ...]:
    """Reads the output of `NVLINK_COMMAND`; empty where there is no link."""
    found: dict[int, dict[int, bool]] = {}
    links: dict[int, bool] = {}
    for line in text.splitlines():
        gpu = re.match(r"GPU (\d+):", line.strip())
        link = re.match(r"Link (\d+): (.*)", line.strip())
        if gpu:
            links = found.setdefault(int(gpu[1]), {})
        elif link:
            links[int(link[1])] = "inactive" not in link[2].lower()
    return tuple(
        NvLinks(
            gpu=index,
            up=tuple(n for n, up in states.items() if up),
            down=tuple(n for n, up in states.items() if not up),
        )
        for index, states in found.items()
    )
