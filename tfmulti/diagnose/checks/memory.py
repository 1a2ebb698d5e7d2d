"""The host's memory against that of its GPUs.

Input pipelines, checkpoints and pinned buffers live there: once to twice the
GPUs' memory is what well-balanced machines have.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine
from tfmulti.units import bytes_text

# A machine sold with as much RAM as GPU memory reports some percent less.
ONCE = 0.95


def check(machine: Machine) -> Iterator[Finding]:
    """Compares RAM with the sum of the GPUs' memory."""
    ram = machine.host.memory_bytes
    total = sum(gpu.memory_bytes or 0 for gpu in machine.gpus)
    if ram is None or not total or ram >= ONCE * 2 * total:
        return
    scarce = ram < ONCE * total
    limited = " (its group's limit)" if machine.host.memory_limited else ""
    yield Finding(
        code="host_memory",
        severity="warning" if scarce else "note",
        subject="host",
        evidence=f"{bytes_text(ram)} of memory{limited} for "
        f"{bytes_text(total)} on GPUs, {ram / total:.2g} times",
        remedy="Give the process more memory; 1 to 2 times is usual, and "
        "caching data in memory needs more.",
    )
