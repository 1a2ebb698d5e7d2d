"""The GPUs that CUDA_VISIBLE_DEVICES leaves to a process.

CUDA reads the variable as a list of indices or UUIDs (a unique beginning of
one is enough), and stops at the first entry that names no GPU. "-1" or an
empty value therefore hides all of them. What is divided among workers is the
list's own entries, so it does not matter in which order CUDA counts.

A slice of a GPU ("MIG-...") is taken as it is named: the driver lists slices
elsewhere. CUDA gives a process one slice at most.

https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tfmulti.hardware.gpus import Gpu, GpuSearch, find_gpus

CUDA_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"

# "NoDevFiles" is Slurm's word for a job without GPUs.
_NONE_ASKED = ("", "-1", "NoDevFiles", "none", "void")


@dataclass(frozen=True, kw_only=True)
class VisibleGpus:
    """The GPUs that a process started now would see.

    Attributes:
        names: What CUDA_VISIBLE_DEVICES would call each of them.
        asked: The value of CUDA_VISIBLE_DEVICES where it asks for GPUs by
            name, else None.
        missing: The first entry of it that names no GPU of this host, else
            None. CUDA ignores that one and all after it.
        problem: Why a GPU that may be there cannot be used, in words.
    """

    names: tuple[str, ...] = ()
    asked: str | None = None
    missing: str | None = None
    problem: str | None = None

    @property
    def per_process(self) -> int:
        """The most that one process can use."""
        if any(name.startswith("MIG-") for name in self.names):
            return 1
        return len(self.names)


def visible_gpus(
    env: Mapping[str, str], find: Callable[[], GpuSearch] = find_gpus
) -> VisibleGpus:
    """Finds the GPUs that `env` leaves to a process.

    Args:
        env: The environment of this process.
        find: Searches this host; not called where `env` hides every GPU.
    """
    value = env.get(CUDA_VISIBLE_DEVICES)
    if value is not None and value.strip() in _NONE_ASKED:
        return VisibleGpus()
    search = find()
    if value is None:
        return VisibleGpus(
            names=tuple(str(gpu.index) for gpu in search.gpus),
            problem=search.problem,
        )
    names: list[str] = []
    missing = None
    for entry in (part.strip() for part in value.split(",")):
        if entry in names or not _is_one(entry, search.gpus):
            missing = entry
            break
        names.append(entry)
    if missing in _NONE_ASKED:
        missing = None
    return VisibleGpus(
        names=tuple(names),
        asked=value,
        missing=missing,
        problem=search.problem,
    )


def _is_one(entry: str, gpus: tuple[Gpu, ...]) -> bool:
    """Whether CUDA would find exactly one GPU by this entry."""
    if entry.startswith("MIG-"):
        return bool(gpus)
    if entry.isdecimal():
        return int(entry) < len(gpus)
    if not entry.startswith("GPU-"):
        return False
    return sum(gpu.uuid.startswith(entry) for gpu in gpus) == 1
