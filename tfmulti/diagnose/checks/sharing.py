"""Who may use a GPU: compute mode, slices, other processes, persistence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tfmulti.diagnose.findings import Finding, gpu_names
from tfmulti.diagnose.machine import Machine
from tfmulti.hardware.smi_query import GpuState
from tfmulti.units import bytes_text

# What a driver takes for itself, and a desktop with it, stays below.
BUSY_SHARE = 0.05


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at what keeps a job from having GPUs for itself."""
    gpus = machine.gpus
    prohibited = _indices(gpus, lambda g: g.compute_mode == "Prohibited")
    if prohibited:
        yield Finding(
            code="compute_prohibited",
            severity="error",
            subject=gpu_names(prohibited),
            evidence="compute mode Prohibited: no CUDA program may start",
            remedy="nvidia-smi -c 0",
        )
    exclusive = _indices(
        gpus, lambda g: (g.compute_mode or "").startswith("Exclusive")
    )
    if exclusive:
        yield Finding(
            code="compute_exclusive",
            severity="warning",
            subject=gpu_names(exclusive),
            evidence="compute mode Exclusive_Process: a second process "
            "(another worker, a notebook) fails on it",
            remedy="nvidia-smi -c 0, unless one process per GPU is meant.",
        )
    slices = _indices(gpus, lambda g: g.mig is True)
    if slices:
        yield Finding(
            code="mig_on",
            severity="warning",
            subject=gpu_names(slices),
            evidence="divided into slices (MIG): a process can use one "
            "slice, and slices cannot reduce gradients by NCCL",
            remedy="nvidia-smi -mig 0 to train on several GPUs.",
        )
    for gpu in gpus:
        yield from _occupied(gpu)
    slow = _indices(gpus, lambda g: g.persistence is False)
    if slow:
        yield Finding(
            code="persistence_off",
            severity="note",
            subject=gpu_names(slow),
            evidence="the driver's state is unloaded between uses: settings "
            "are lost, and each start takes seconds longer",
            remedy="Start nvidia-persistenced, or nvidia-smi -pm 1",
        )


def _indices(
    gpus: Iterable[GpuState], holds: Callable[[GpuState], bool]
) -> list[int]:
    return [gpu.index for gpu in gpus if holds(gpu)]


def _occupied(gpu: GpuState) -> Iterator[Finding]:
    used, total = gpu.memory_used_bytes, gpu.memory_bytes
    if used is None or total is None or used <= BUSY_SHARE * total:
        return
    yield Finding(
        code="gpu_occupied",
        severity="warning",
        subject=gpu_names([gpu.index]),
        evidence=f"{bytes_text(used)} of {bytes_text(total)} are taken by "
        "other processes",
        remedy="See nvidia-smi for them, end them or hide the GPU by "
        "CUDA_VISIBLE_DEVICES.",
    )
