"""GPUs that the driver has, and TensorFlow does not find."""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine


def check(machine: Machine) -> Iterator[Finding]:
    """Compares the driver's GPUs with TensorFlow's."""
    visible, found = machine.visible, machine.software.gpus
    if visible.missing is not None:
        yield Finding(
            code="visible_devices_wrong",
            severity="error",
            subject="CUDA_VISIBLE_DEVICES",
            evidence=f"it is {visible.asked!r}, and {visible.missing!r} is "
            f"none of the {len(machine.gpus)} GPU(s): CUDA ignores it and "
            "all after it",
            remedy="Name GPUs of this host, each once.",
        )
    elif len(visible.names) < len(machine.gpus):
        yield Finding(
            code="gpus_hidden",
            severity="note",
            subject="CUDA_VISIBLE_DEVICES",
            evidence=f"it leaves {len(visible.names)} of "
            f"{len(machine.gpus)} GPU(s)",
            remedy="Unset it to use all of them.",
        )
    if machine.software.cuda_build is not True or found is None:
        return
    if found < visible.per_process:
        yield Finding(
            code="gpus_unseen",
            severity="error",
            subject="TensorFlow",
            evidence=f"it finds {found} of {visible.per_process} GPU(s)",
            remedy="Mend the other errors on driver, libraries and compute "
            "mode first; then see what TensorFlow logs with "
            "TF_CPP_MIN_LOG_LEVEL=0.",
        )
