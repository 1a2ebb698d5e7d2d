"""IOMMU and ACS: PCIe isolation that slows or stops GPU-to-GPU traffic.

Both send what one GPU writes to another up to the CPU. A virtual machine
needs them; on a bare one they cost bandwidth, and NCCL may hang.
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at a bare machine with several GPUs, or GPUs and NICs."""
    host = machine.host
    alone = len(machine.gpus) < 2 and not host.infiniband
    if host.virtual or alone or not machine.gpus:
        return
    if host.acs_bridges:
        shown = ", ".join(host.acs_bridges[:4])
        yield Finding(
            code="acs_on",
            severity="warning",
            subject="host",
            evidence=f"Access Control Services are on at "
            f"{len(host.acs_bridges)} PCI bridge(s): {shown}",
            remedy="Turn ACS off in the BIOS, or at each boot: setpci -s "
            "BRIDGE ECAP_ACS+6.w=0000",
        )
    if host.iommu_type and host.iommu_type.startswith("DMA"):
        yield Finding(
            code="iommu_on",
            severity="warning",
            subject="host",
            evidence="the IOMMU translates every transfer (groups of type "
            f"{host.iommu_type})",
            remedy="Boot with iommu=pt, or turn the IOMMU off in the BIOS.",
        )
