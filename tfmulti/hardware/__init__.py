"""Facts of this machine, learnt without TensorFlow.

A launcher that initialised the devices could not hand them to its workers, so
it asks the driver's own tools instead.

    gpus.py       the NVIDIA GPUs of this host
    visible.py    those that CUDA_VISIBLE_DEVICES leaves to a process
    cores.py      the CPU cores that this process may use
    cgroups.py    the groups whose limits hold for it

For the doctor, from recorded texts:

    smi_query.py  the state of each GPU
    topology.py   how GPUs are joined
    host.py       memory, limits, clock, PCIe isolation
"""

from __future__ import annotations

from tfmulti.hardware.cores import Cores, usable_cores
from tfmulti.hardware.gpus import Gpu, GpuSearch, find_gpus
from tfmulti.hardware.visible import (
    CUDA_VISIBLE_DEVICES,
    VisibleGpus,
    visible_gpus,
)

__all__ = [
    "CUDA_VISIBLE_DEVICES",
    "Cores",
    "Gpu",
    "GpuSearch",
    "VisibleGpus",
    "find_gpus",
    "usable_cores",
    "visible_gpus",
]
