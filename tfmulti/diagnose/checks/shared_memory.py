"""/dev/shm, through which the processes and GPUs of a host exchange data.

NCCL keeps its buffers there where peers have no direct access. A container
gets 64 MiB unless told otherwise, which is too small for several GPUs.
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine
from tfmulti.units import bytes_text

DOCKER_DEFAULT_BYTES = 64 * 2**20
ENOUGH_BYTES = 2**30


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at its size where there are several GPUs."""
    size = machine.host.shm_bytes
    if len(machine.gpus) < 2 or size is None or size >= ENOUGH_BYTES:
        return
    yield Finding(
        code="shm_small",
        severity="error" if size <= DOCKER_DEFAULT_BYTES else "warning",
        subject="/dev/shm",
        evidence=f"{bytes_text(size)}, for {len(machine.gpus)} GPUs",
        remedy="docker run --shm-size=1g (or more), or --ipc=host; in "
        "Kubernetes an emptyDir of medium Memory on /dev/shm.",
    )
