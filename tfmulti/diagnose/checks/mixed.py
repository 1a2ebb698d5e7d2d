"""Unequal GPUs: the slowest and the smallest set the pace for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine
from tfmulti.units import bytes_text


def check(machine: Machine) -> Iterator[Finding]:
    """Compares the GPUs with one another."""
    kinds = Counter(
        (gpu.name, gpu.memory_bytes or 0) for gpu in machine.gpus
    )
    if len(kinds) < 2:
        return
    named = ", ".join(
        f"{count} x {name} ({bytes_text(memory)})"
        for (name, memory), count in kinds.items()
    )
    yield Finding(
        code="gpus_mixed",
        severity="warning",
        subject="host",
        evidence=f"unequal GPUs: {named}; each step waits for the slowest",
        remedy="Train on equal ones: hide the others by "
        "CUDA_VISIBLE_DEVICES.",
    )
