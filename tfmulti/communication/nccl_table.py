"""The NCCL variables that matter on a GPU host: names, values, since when.

Source of names, values and versions: NVIDIA, "NCCL user guide, Environment
Variables",
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, checked
against the source of NCCL 2.27.7 (`src/graph/tuning.cc`, `src/debug.cc`,
`src/transport/net_socket.cc`). 2.27.7 is the lowest NCCL that TensorFlow 2.21
accepts (its extra `and-cuda` asks for `nvidia-nccl-cu12>=2.27.7,<3.0`).

`NCCL_P2P_NET_CHUNKSIZE` and its kin are left out on purpose: they shape
send/receive, which data parallelism does not use.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfmulti.communication.nccl_values import (
    Choice,
    Flag,
    Kind,
    Text,
    Tokens,
    Whole,
)

OLDEST_NCCL = (2, 27, 7)

_FUNCTIONS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce")
_ALGORITHMS = (
    "Ring", "Tree", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"
)  # fmt: skip
_SUBSYSTEMS = (
    "INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC",
    "CALL", "PROXY", "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS", "ALL",
)  # fmt: skip
_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One NCCL variable.

    Attributes:
        field: Its field in `Nccl`.
        variable: Its name in the environment.
        kind: What values it takes.
        since: First NCCL version that reads it, (major, minor).
        aliases: Older names that NCCL still reads for the same thing.
    """

    field: str
    variable: str
    kind: Kind
    since: tuple[int, int] = (2, 0)
    aliases: tuple[str, ...] = ()


def _setting(
    field: str,
    variable: str,
    kind: Kind,
    since: tuple[int, int] = (2, 0),
    *aliases: str,
) -> Setting:
    return Setting(
        field=field,
        variable=variable,
        kind=kind,
        since=since,
        aliases=aliases,
    )


SETTINGS: tuple[Setting, ...] = (
    # What is done inside a collective.
    _setting("algorithm", "NCCL_ALGO", Tokens(_ALGORITHMS, _FUNCTIONS), (2, 5)),
    _setting(
        "protocol",
        "NCCL_PROTO",
        Tokens(("LL", "LL128", "Simple"), _FUNCTIONS),
        (2, 5),
    ),
    _setting(
        "min_channels",
        "NCCL_MIN_CTAS",
        Whole(1, 64),
        (2, 17),
        "NCCL_MIN_NCHANNELS",
    ),
    _setting(
        "max_channels",
        "NCCL_MAX_CTAS",
        Whole(1, 64),
        (2, 17),
        "NCCL_MAX_NCHANNELS",
    ),
    _setting(
        "buffer_bytes",
        "NCCL_BUFFSIZE",
        Whole(1024, _LARGEST_INT, "bytes (powers of 2; NCCL's own is 4194304)"),
    ),
    _setting(
        "launch_mode", "NCCL_LAUNCH_MODE", Choice(("PARALLEL", "GROUP")), (2, 1)
    ),
    # Inside a host.
    _setting(
        "p2p_level",
        "NCCL_P2P_LEVEL",
        Choice(("LOC", "NVL", "PIX", "PXB", "PHB", "SYS")),
        (2, 3),
    ),
    _setting("p2p_disable", "NCCL_P2P_DISABLE", Flag()),
    _setting("shm_disable", "NCCL_SHM_DISABLE", Flag()),
    _setting("nvls", "NCCL_NVLS_ENABLE", Whole(0, 2), (2, 17)),
    _setting("mnnvl", "NCCL_MNNVL_ENABLE", Whole(0, 2), (2, 21)),
    _setting(
        "topology_file",
        "NCCL_TOPO_FILE",
        Text("the path of a topology XML file"),
        (2, 6),
    ),
    # InfiniBand and RoCE.
    _setting("ib_disable", "NCCL_IB_DISABLE", Flag()),
    _setting(
        "ib_hca",
        "NCCL_IB_HCA",
        Text("a comma list of adapters, as in =mlx5_0:1,mlx5_1 (^ excludes)"),
    ),
    _setting("ib_gid_index", "NCCL_IB_GID_INDEX", Whole(-1, 255), (2, 1)),
    _setting(
        "ib_timeout",
        "NCCL_IB_TIMEOUT",
        Whole(0, 31, "(waits 4.096 us x 2^value; 0 for ever)"),
    ),
    _setting("ib_retry_count", "NCCL_IB_RETRY_CNT", Whole(0, 7), (2, 1)),
    _setting("ib_service_level", "NCCL_IB_SL", Whole(0, 15), (2, 1)),
    _setting("ib_traffic_class", "NCCL_IB_TC", Whole(0, 255), (2, 1)),
    _setting(
        "ib_queue_pairs", "NCCL_IB_QPS_PER_CONNECTION", Whole(1, 128), (2, 10)
    ),
    _setting("collnet", "NCCL_COLLNET_ENABLE", Flag(), (2, 6)),
    # GPUDirect: between GPU memory and the network card.
    _setting(
        "gdr_level",
        "NCCL_NET_GDR_LEVEL",
        Choice(("LOC", "PIX", "PXB", "PHB", "SYS")),
        (2, 4),
        "NCCL_IB_GDR_LEVEL",
    ),
    _setting("gdr_read", "NCCL_NET_GDR_READ", Flag()),
    # Sockets.
    _setting(
        "socket_interface",
        "NCCL_SOCKET_IFNAME",
        Text("a comma list of interfaces, as in =eth0 or ^lo,docker"),
    ),
    _setting(
        "socket_family", "NCCL_SOCKET_FAMILY", Choice(("AF_INET", "AF_INET6"))
    ),
    _setting("socket_threads", "NCCL_SOCKET_NTHREADS", Whole(1, 16), (2, 4)),
    _setting(
        "sockets_per_thread", "NCCL_NSOCKS_PERTHREAD", Whole(1, 64), (2, 4)
    ),
    # Any network.
    _setting("cross_nic", "NCCL_CROSS_NIC", Whole(0, 2)),
    _setting(
        "network",
        "NCCL_NET",
        Text("IB, Socket or the name that a plugin gives itself"),
        (2, 10),
    ),
    _setting(
        "net_plugin",
        "NCCL_NET_PLUGIN",
        Text("a library, the end of its name (libnccl-net-<end>.so), or none"),
        (2, 11),
    ),
    _setting(
        "tuner_plugin",
        "NCCL_TUNER_PLUGIN",
        Text("a library, the end of its name, or none"),
        (2, 19),
    ),
    # What it says.
    _setting(
        "debug", "NCCL_DEBUG", Choice(("VERSION", "WARN", "INFO", "TRACE"))
    ),
    _setting(
        "debug_subsystems",
        "NCCL_DEBUG_SUBSYS",
        Tokens(_SUBSYSTEMS),
        (2, 3),
    ),
    _setting(
        "debug_file",
        "NCCL_DEBUG_FILE",
        Text("a path; %h becomes the host and %p the process id"),
        (2, 2),
    ),
)
