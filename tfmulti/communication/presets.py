"""NCCL settings for common kinds of host, each with its reason.

NCCL chooses well on most machines by itself. A preset is for the hosts where
it is known to need help; it sets as little as possible, and each setting says
why. A person's own `--nccl key=value` goes over a preset's.

    --nccl_preset ethernet --nccl socket_interface==ens5

Facts: NVIDIA's manual (see `nccl_table`); for EFA, the notes of AWS's plugin
(https://github.com/aws/aws-ofi-nccl).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tfmulti.communication.nccl import Nccl, find_setting
from tfmulti.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Settings for one kind of host.

    Attributes:
        name: What `--nccl_preset` says.
        host: The kind of host that it is for.
        nccl: The settings.
        why: A reason for each field that `nccl` sets.
    """

    name: str
    host: str
    nccl: Nccl
    why: Mapping[str, str]

    def text(self) -> str:
        """Gives the preset as people read it, a line for each setting."""
        variables = self.nccl.variables()
        lines = [f"{self.name}: {self.host}"]
        for field, reason in self.why.items():
            name = find_setting(field).variable
            lines.append(f"  {name}={variables[name]}: {reason}")
        return "\n".join(lines)


_BOOTSTRAP = (
    "workers meet over a real network card; loopback and container bridges "
    "have addresses that other hosts cannot reach"
)

_ALL = (
    Preset(
        name="nvlink",
        host="GPUs of one host joined by NVLink or NVSwitch",
        nccl=Nccl(p2p_level="NVL", nvls=2),
        why={
            "p2p_level": "direct access where NVLink joins two GPUs; a pair "
            "without it goes through host memory and not over the CPU's PCI "
            "bridge, which is the slower way",
            "nvls": "adds gradients inside the NVSwitch where the hardware "
            "can (Hopper and later), which halves the traffic; says so again "
            "in case a site-wide nccl.conf has switched it off",
        },
    ),
    Preset(
        name="pcie",
        host="GPUs of one host on PCI Express only",
        nccl=Nccl(p2p_level="PXB", nvls=0),
        why={
            "p2p_level": "direct access only below common PCI switches; "
            "through the CPU it is slow on many boards and stalls where the "
            "IOMMU or ACS redirects it, so such pairs use host memory",
            "nvls": "there is no NVSwitch: its buffers need not be reserved",
        },
    ),
    Preset(
        name="ethernet",
        host="several hosts on TCP/IP, 10 to 100 Gbit/s",
        nccl=Nccl(
            ib_disable=True,
            socket_interface="^lo,docker,veth",
            socket_threads=4,
            sockets_per_thread=4,
        ),
        why={
            "ib_disable": "no verbs: does not try a RoCE port that is there "
            "but not configured, which ends in a timeout",
            "socket_interface": _BOOTSTRAP,
            "socket_threads": "one thread does not fill a fast link; the "
            "manual names 4 for 100 Gbit/s",
            "sockets_per_thread": "one TCP stream is held back by its window "
            "and by per-flow limits; 4 x 4 stays under NCCL's limit of 64",
        },
    ),
    Preset(
        name="infiniband",
        host="several hosts on InfiniBand or RoCE",
        nccl=Nccl(
            ib_disable=False,
            ib_timeout=22,
            ib_retry_count=7,
            gdr_level="PXB",
            socket_interface="^lo,docker,veth",
        ),
        why={
            "ib_disable": "says so again in case a site-wide nccl.conf has "
            "switched it off",
            "ib_timeout": "7 tries of 17 s: a congested or rerouting fabric "
            "gets 2 minutes before a job of many hosts is ended",
            "ib_retry_count": "the most that InfiniBand allows",
            "gdr_level": "network cards read GPU memory directly below common "
            "PCI switches; across the CPU, staging in host memory is mostly "
            "faster",
            "socket_interface": _BOOTSTRAP,
        },
    ),
    Preset(
        name="efa",
        host="several AWS hosts with Elastic Fabric Adapter",
        nccl=Nccl(
            net_plugin="ofi",
            buffer_bytes=8 * 2**20,
            socket_interface="^lo,docker,veth",
        ),
        why={
            "net_plugin": "EFA is reached through AWS's libfabric plugin, "
            "libnccl-net-ofi.so; if it is not found NCCL falls back to "
            "sockets, so look once with --nccl debug=INFO for 'NET/OFI' "
            "(older images name the file libnccl-net.so: give that name)",
            "buffer_bytes": "EFA has high bandwidth and more latency than "
            "InfiniBand, so twice NCCL's buffer keeps more bytes in flight",
            "socket_interface": _BOOTSTRAP,
        },
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({p.name: p for p in _ALL})


def find_preset(name: str) -> Preset:
    """Finds a preset by its name.

    Raises:
        UsageError: There is no preset of that name.
    """
    if name not in PRESETS:
        raise UsageError(
            received=f"--nccl_preset={name}",
            allowed=", ".join(PRESETS),
            remedy="Choose one of these, or leave NCCL's own choice.",
        )
    return PRESETS[name]
