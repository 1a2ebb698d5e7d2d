"""The NVIDIA GPUs of this host, from nvidia-smi or the driver's /proc files.

nvidia-smi comes with the driver and answers in a line per GPU. Where it is
missing, as in many containers, the driver still lists its GPUs under
/proc/driver/nvidia, without their memory. A host with neither has no GPU that
TensorFlow could use.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

QUERY: tuple[str, ...] = (
    "nvidia-smi",
    "--query-gpu=index,uuid,name,memory.total",
    "--format=csv,noheader,nounits",
)
PROC_FILES = "/proc/driver/nvidia/gpus"

# A driver that is being loaded takes seconds; one that hangs takes for ever.
TIMEOUT_S = 30.0

Runner = Callable[[Sequence[str]], str]


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU of this host.

    Attributes:
        index: Its place in PCI bus order, as nvidia-smi counts.
        uuid: "GPU-" and 32 hexadecimal digits.
        name: Its product name.
        memory_bytes: Its memory; None where the driver does not say.
    """

    index: int
    uuid: str
    name: str
    memory_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class GpuSearch:
    """What a search for GPUs found.

    Attributes:
        gpus: The GPUs, by index.
        problem: Why a GPU that may be there cannot be used, in words; None
            where nothing is wrong.
    """

    gpus: tuple[Gpu, ...]
    problem: str | None = None


def find_gpus(
    run: Runner | None = None, proc_files: str = PROC_FILES
) -> GpuSearch:
    """Asks the driver for the GPUs of this host.

    Args:
        run: Runs a command and returns its output; raises OSError where
            there is no such program, subprocess.SubprocessError where it
            fails.
        proc_files: The folder in which the driver lists its GPUs.
    """
    try:
        return GpuSearch(gpus=parse_nvidia_smi((run or _run)(QUERY)))
    except OSError:
        return GpuSearch(gpus=_from_proc(Path(proc_files)))
    except (subprocess.SubprocessError, ValueError) as error:
        return GpuSearch(gpus=(), problem=f"nvidia-smi failed: {error}")


def parse_nvidia_smi(text: str) -> tuple[Gpu, ...]:
    """Reads the answer to `QUERY`: "0, GPU-5d5b..., NVIDIA L4, 23034".

    Raises:
        ValueError: A line is none of nvidia-smi's.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines == ["No devices were found"]:
        return ()
    return tuple(map(_parse_line, lines))


def parse_proc_information(text: str, index: int) -> Gpu:
    """Reads a GPU's file /proc/driver/nvidia/gpus/<bus>/information."""
    pairs = (line.partition(":") for line in text.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    return Gpu(
        index=index,
        uuid=fields.get("GPU UUID", ""),
        name=fields.get("Model", "NVIDIA GPU"),
        memory_bytes=None,
    )


def _parse_line(line: str) -> Gpu:
    index, uuid, rest = (part.strip() for part in line.split(",", 2))
    name, _, memory_mib = rest.rpartition(",")
    if not index.isdecimal() or not re.match(r"GPU-[0-9a-fA-F-]+$", uuid):
        raise ValueError(f"unexpected line {line!r}")
    # "[N/A]" where the GPU shares the host's memory.
    known = memory_mib.strip().isdecimal()
    return Gpu(
        index=int(index),
        uuid=uuid,
        name=name.strip(),
        memory_bytes=int(memory_mib) * 2**20 if known else None,
    )


def _from_proc(folder: Path) -> tuple[Gpu, ...]:
    # Folder names are PCI addresses, so their order is nvidia-smi's.
    files = sorted(folder.glob("*/information"))
    return tuple(
        parse_proc_information(file.read_text(), index)
        for index, file in enumerate(files)
    )


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    if done.returncode and "No devices were found" not in done.stdout:
        said = " ".join(done.stdout.split())
        raise subprocess.SubprocessError(
            said or f"exit code {done.returncode}"
        )
    return done.stdout
