"""Faults of the GPUs: a reset asked for, memory errors, rows to replace.

A row that fails is replaced by a spare one at the next reset of the GPU; when
there is no spare left, the GPU has to be exchanged.
https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding, gpu_names
from tfmulti.diagnose.machine import Machine
from tfmulti.hardware.smi_query import GpuState


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at each GPU, then at ECC in common."""
    for gpu in machine.gpus:
        yield from _faults(gpu)
        yield from _rows(gpu)
    off = [gpu.index for gpu in machine.gpus if gpu.ecc is False]
    if off:
        yield Finding(
            code="ecc_off",
            severity="note",
            subject=gpu_names(off),
            evidence="memory errors are not corrected (ECC is off)",
            remedy="nvidia-smi -e 1 and a reboot, if results matter more "
            "than some memory and speed.",
        )


def _faults(gpu: GpuState) -> Iterator[Finding]:
    if gpu.recovery:
        yield Finding(
            code="recovery_asked",
            severity="error",
            subject=gpu_names([gpu.index]),
            evidence=f"after a fault the driver asks for: {gpu.recovery}",
            remedy="Stop what runs on it and do so; see dmesg for the Xid.",
        )
    if gpu.ecc_uncorrected:
        yield Finding(
            code="ecc_uncorrected",
            severity="error",
            subject=gpu_names([gpu.index]),
            evidence=f"{gpu.ecc_uncorrected} uncorrected memory error(s) "
            "since the driver was loaded",
            remedy="Reset the GPU and run dcgmi diag -r 3; exchange it if "
            "errors come back.",
        )


def _rows(gpu: GpuState) -> Iterator[Finding]:
    if gpu.remap_failure:
        yield Finding(
            code="rows_exhausted",
            severity="error",
            subject=gpu_names([gpu.index]),
            evidence="remapping a faulty memory row failed",
            remedy="Have the GPU exchanged.",
        )
    elif gpu.remap_pending:
        yield Finding(
            code="rows_pending",
            severity="warning",
            subject=gpu_names([gpu.index]),
            evidence="a faulty memory row waits to be replaced",
            remedy="Stop what runs on it and reset it: nvidia-smi "
            f"--gpu-reset -i {gpu.index}",
        )
