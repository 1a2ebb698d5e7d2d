"""Which GPUs share a switch, a NUMA node and a NIC, from the path matrix."""

from __future__ import annotations

from collections.abc import Mapping

from tfmulti.hardware.topology import Matrix

# Kinds of path that stay below one PCIe host bridge.
_BELOW = ("PIX", "PXB")
_NEAR_FIRST = ("PIX", "PXB", "PHB", "NODE")


def switch_groups(paths: Matrix) -> list[list[int]]:
    """Groups GPUs that reach each other, or one NIC, through switches only.

    GPUs joined by NVLink show that instead of their PCIe path; a NIC below
    the same switch tells.
    """
    groups: list[set[str]] = []
    for (row, column), word in paths.cells.items():
        if row.startswith("GPU") and word in _BELOW:
            joined = {row, column}
            for group in [g for g in groups if g & joined]:
                joined |= group
                groups.remove(group)
            groups.append(joined)
    found = [sorted(_number(n) for n in g if n[0] == "G") for g in groups]
    return sorted(group for group in found if len(group) > 1)


def numa_groups(paths: Matrix) -> Mapping[str, list[int]]:
    """Groups GPUs by NUMA node."""
    groups: dict[str, list[int]] = {}
    for gpu in paths.gpus:
        node = paths.numa_nodes.get(gpu, "N/A")
        if node != "N/A":
            groups.setdefault(node, []).append(_number(gpu))
    return groups


def near_nics(paths: Matrix) -> Mapping[int, list[str]]:
    """Gives each GPU's nearest NICs, those in its own NUMA node."""
    near: dict[int, list[str]] = {}
    for gpu in paths.gpus:
        nics = {
            column: word
            for (row, column), word in paths.cells.items()
            if row == gpu and not column.startswith("GPU")
        }
        for kind in _NEAR_FIRST:
            names = [nic for nic, word in nics.items() if word == kind]
            if names:
                near[_number(gpu)] = names
                break
    return near


def _number(gpu: str) -> int:
    return int(gpu.removeprefix("GPU"))
