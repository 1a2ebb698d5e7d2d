"""The NVIDIA driver: there, answering, and new enough for TensorFlow.

A driver runs every CUDA of its own major version and older ones: a program
built with 12.5 runs on a driver for 12.2, though code that must be translated
when it is loaded needs a driver at least as new.
https://docs.nvidia.com/deploy/cuda-compatibility/
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine
from tfmulti.diagnose.versions import numbers

# What nvidia-smi says where the driver is loaded and has no GPU.
NO_DEVICES = "No devices were found"


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at the driver."""
    problem = machine.driver_problem
    if problem == NO_DEVICES and not machine.host.nvidia_devices:
        problem = None
    if machine.gpus:
        yield from _age(machine)
    elif problem:
        yield Finding(
            code="driver_unreachable",
            severity="error",
            subject="driver",
            evidence=f"nvidia-smi: {problem}",
            remedy="Reboot after a driver update; else look for NVRM and "
            "Xid in dmesg, and install the driver again for this kernel.",
        )
    elif machine.host.nvidia_devices:
        yield Finding(
            code="driver_missing",
            severity="error",
            subject="driver",
            evidence=f"{machine.host.nvidia_devices} NVIDIA device(s) on the "
            "PCI bus, but no nvidia-smi answers",
            remedy="Install the NVIDIA driver; in a container, start it with "
            "--gpus all and the NVIDIA container toolkit.",
        )
    elif machine.software.gpus:
        yield Finding(
            code="driver_silent",
            severity="warning",
            subject="driver",
            evidence=f"TensorFlow finds {machine.software.gpus} GPU(s), but "
            "there is no nvidia-smi to ask about them",
            remedy="Install the driver's tools (nvidia-utils); in a "
            "container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        )
    else:
        bus = (
            "the PCI bus cannot be read"
            if machine.host.nvidia_devices is None
            else "no NVIDIA device is on the PCI bus"
        )
        yield Finding(
            code="gpu_absent",
            severity="note",
            subject="host",
            evidence=f"nvidia-smi names no GPU, and {bus}",
            remedy="Train on CPU replicas, or move to a machine with GPUs.",
        )


def _age(machine: Machine) -> Iterator[Finding]:
    driver, built = machine.cuda_version, machine.software.cuda
    if driver is None or built is None:
        return
    evidence = (
        f"driver {machine.driver_version} speaks CUDA {driver}, TensorFlow "
        f"{machine.software.tensorflow} was built with CUDA {built}"
    )
    if numbers(driver)[0] < numbers(built)[0]:
        yield Finding(
            code="driver_too_old",
            severity="error",
            subject="driver",
            evidence=evidence,
            remedy=f"Install a driver for CUDA {numbers(built)[0]} or newer.",
        )
    elif numbers(driver)[:2] < numbers(built)[:2]:
        yield Finding(
            code="driver_older",
            severity="note",
            subject="driver",
            evidence=f"{evidence}; it runs, but code that XLA compiles may "
            "not load",
            remedy=f"Update the driver to one for CUDA {built} or newer.",
        )
