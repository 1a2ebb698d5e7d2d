"""CUDA's runtime, cuDNN and NCCL: those that TensorFlow needs, found."""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine
from tfmulti.diagnose.versions import numbers

_INSTALL = 'pip install "tensorflow[and-cuda]" brings the right ones.'


def check(machine: Machine) -> Iterator[Finding]:
    """Compares what TensorFlow declares with what loads."""
    if not machine.gpus:
        return
    for name, library in machine.software.libraries.items():
        if library.found is None:
            yield Finding(
                code="library_missing",
                severity="error",
                subject=name,
                evidence=f"it does not load; TensorFlow needs "
                f"{library.needs}",
                remedy=_INSTALL,
            )
        elif _older(library.found, library.needs):
            yield Finding(
                code="library_old",
                severity="warning",
                subject=name,
                evidence=f"version {library.found} loads; TensorFlow "
                f"declares {library.needs} or newer",
                remedy=f"{_INSTALL} Look for another one on "
                "LD_LIBRARY_PATH.",
            )


def _older(found: str, needs: str) -> bool:
    """Compares as far as both say: CUDA's runtime tells two numbers."""
    known = min(len(numbers(found)), len(numbers(needs)))
    return numbers(found)[:known] < numbers(needs)[:known]
