"""The PCIe link of each GPU: lanes and generation, now against possible.

An idle GPU lowers its link's generation, and keeps its lanes. So fewer lanes
point at a riser, a slot or dirt on the contacts, while a low generation means
something only under load, or where the slot cannot do better.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.expected import lanes
from tfmulti.diagnose.findings import Finding, gpu_names
from tfmulti.diagnose.machine import Machine
from tfmulti.hardware.smi_query import GpuState


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at each link."""
    for gpu in machine.gpus:
        yield from _width(gpu, machine.host.virtual)
        yield from _generation(gpu)


def _width(gpu: GpuState, virtual: bool) -> Iterator[Finding]:
    possible = max(gpu.pcie_width_max or 0, lanes(gpu.name) or 0)
    if gpu.pcie_width is None or gpu.pcie_width >= possible:
        return
    yield Finding(
        code="pcie_width",
        severity="note" if virtual else "warning",
        subject=gpu_names([gpu.index]),
        evidence=f"PCIe x{gpu.pcie_width} instead of x{possible}: "
        f"{gpu.pcie_width / possible:.0%} of the bandwidth to host and NIC",
        remedy="Compare with another machine of the same kind: clouds sell "
        "GPUs so."
        if virtual
        else "Seat card and riser anew, try another slot, look at the "
        "BIOS's bifurcation.",
    )


def _generation(gpu: GpuState) -> Iterator[Finding]:
    best = gpu.pcie_generation_gpu
    slot = gpu.pcie_generation_host
    if best is None:
        return
    if slot is not None and slot < best:
        evidence = f"its slot does PCIe {slot}.0, the GPU {best}.0"
        remedy = "Use a slot of that generation, or set it in the BIOS."
    elif gpu.busy and (gpu.pcie_generation or best) < best:
        evidence = f"PCIe {gpu.pcie_generation}.0 under load, not {best}.0"
        remedy = "Seat it anew; look for corrected PCIe errors in dmesg."
    else:
        return
    yield Finding(
        code="pcie_generation",
        severity="warning",
        subject=gpu_names([gpu.index]),
        evidence=evidence,
        remedy=remedy,
    )
