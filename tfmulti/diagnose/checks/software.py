"""TensorFlow itself: it starts, was built for GPUs, and for these GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding, gpu_names
from tfmulti.diagnose.machine import Machine
from tfmulti.diagnose.versions import numbers
from tfmulti.hardware.smi_query import GpuState

# The least compute capability of each architecture, times ten.
# https://developer.nvidia.com/cuda-gpus
CAPABILITY = {
    "Kepler": 30,
    "Maxwell": 50,
    "Pascal": 60,
    "Volta": 70,
    "Turing": 75,
    "Ampere": 80,
    "Ada Lovelace": 89,
    "Hopper": 90,
    "Blackwell": 100,
}


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at TensorFlow and Keras."""
    software = machine.software
    if software.problem:
        yield Finding(
            code="tensorflow_fails",
            severity="error",
            subject="TensorFlow",
            evidence=software.problem,
            remedy="Install it again in a fresh virtual environment.",
        )
    if software.verified is False:
        yield Finding(
            code="versions_unverified",
            severity="note",
            subject="Keras",
            evidence=f"Keras {software.keras} on TensorFlow "
            f"{software.tensorflow} is not among the versions that the fixes "
            "were verified with",
            remedy="See python -m tfmulti.doctor --keras for those that fit.",
        )
    if not machine.gpus:
        return
    if software.cuda_build is False:
        yield Finding(
            code="tensorflow_cpu_build",
            severity="error",
            subject="TensorFlow",
            evidence=f"TensorFlow {software.tensorflow} was built without "
            f"CUDA, beside {len(machine.gpus)} GPU(s)",
            remedy='pip install "tensorflow[and-cuda]", without '
            "tensorflow-cpu.",
        )
    yield from _architectures(machine)


def _architectures(machine: Machine) -> Iterator[Finding]:
    built = [numbers(c)[0] for c in machine.software.capabilities]
    if not built:
        return
    supported = ", ".join(machine.software.capabilities)
    old = [g for g in machine.gpus if _capability(g) < min(built)]
    if old:
        yield Finding(
            code="gpu_too_old",
            severity="error",
            subject=gpu_names(gpu.index for gpu in old),
            evidence=f"{old[0].name} ({old[0].architecture}) is older than "
            f"all that TensorFlow was built for: {supported}",
            remedy="Hide it by CUDA_VISIBLE_DEVICES, or use an older "
            "TensorFlow.",
        )
    new = [g for g in machine.gpus if _capability(g) // 10 > max(built) // 10]
    if new:
        yield Finding(
            code="gpu_newer",
            severity="note",
            subject=gpu_names(gpu.index for gpu in new),
            evidence=f"{new[0].name} ({new[0].architecture}) is newer than "
            f"TensorFlow's build ({supported}): its kernels are translated "
            "at the first start, which takes minutes",
            remedy="Keep the cache of translations: set CUDA_CACHE_MAXSIZE "
            "to 4294967296 and CUDA_CACHE_PATH to a lasting folder.",
        )


def _capability(gpu: GpuState) -> int:
    """Gives a GPU's capability; one that is not known counts as fitting."""
    return CAPABILITY.get(gpu.architecture or "", 80)
