"""The all-reduce bandwidth between the GPUs of a set-up.

A ring moves 2(n-1)/n of the buffer through each GPU's slowest link; the bus
bandwidth here is what nccl-tests report for large buffers
(`hardware/data/allreduce.csv`, by identifier below).

    inside a host   NVLink switch > NVLink mesh > bridge pairs > PCIe > no P2P
    between hosts   the rate of the host's network cards, if less
"""

from __future__ import annotations

import re

from tfmulti.planner.facts import Setup

GIGA = 1e9

# NVLink, one direction of the datasheet's sum: 122 of 150 (A007), 232 of 300
# (A008), 370 of 450 (A009).
NVLINK_SHARE = 0.8

# PCIe by generation, GB/s: A025 and A026; A005 and A027; A044 and A045.
PCIE_BUS = {3: 8.0, 4: 16.0, 5: 30.0, 6: 40.0}

# Without P2P, through host memory: A037, A038, A040, A048, A049.
NO_P2P_BUS = {3: 4.0, 4: 3.5, 5: 6.0, 6: 6.0}

# Network cards: RDMA near the line rate (A012-A015); TCP about half for
# several streams (A055, A056, A058).
RDMA_SHARE = 0.9
TCP_SHARE = 0.45
RDMA_WORDS = ("ib", "infiniband", "edr", "hdr", "ndr", "rdma", "roce",
              "omni-path", "connectx", "efa")

# GPUs that NVIDIA's driver gives no P2P over PCIe (A048, A049).
_NO_P2P = re.compile(r"RTX (20|30|40|50)\d\d")


def kind_inside(setup: Setup) -> str:
    """Names the link inside a host: none, nvlink, bridge, pcie or no_p2p."""
    if setup.gpus <= setup.hosts:
        return "none"
    text = setup.intra.lower()
    if "no p2p" in text and "no bridge" not in text.replace(", no", " no"):
        return "no_p2p"
    if "bridge" in text and "state" not in text and "no bridge" not in text:
        return "bridge"
    if "nvlink" in text and "no nvlink" not in text:
        return "nvlink" if setup.gpu.nvlink_gbs else "pcie"
    if "no p2p" in text or _NO_P2P.match(setup.gpu.name):
        return "no_p2p"
    sxm = "SXM" in setup.gpu.name or "per GPU" in setup.gpu.name
    if sxm and "pcie" not in text:
        return "nvlink"
    return "pcie"


def bus_inside(setup: Setup) -> float:
    """Gives the bus bandwidth inside a host, in bytes/s."""
    gpu, text = setup.gpu, setup.intra
    stated = re.search(r"(?:gen|gen |pcie ?)(\d)", text.lower())
    generation = gpu.pcie_gen
    if stated and "nvlink" not in text.lower():
        generation = min(generation, max(3, int(stated[1])))
    per_host = setup.gpus / setup.hosts
    nvlink = gpu.nvlink_gbs / 2 * NVLINK_SHARE
    # All GPUs of a host share what leads through its processors.
    pcie = PCIE_BUS[generation] * min(1.0, (4 / per_host) ** 0.5)
    bus = {
        "none": 0.0,
        "nvlink": nvlink,
        # Pairs are joined; a ring of more crosses PCIe between pairs.
        "bridge": nvlink if per_host <= 2 else pcie * 1.3,
        "pcie": pcie,
        "no_p2p": NO_P2P_BUS[generation] * min(1.0, 2 / per_host),
    }
    return GIGA * bus[kind_inside(setup)]


def network_gbit(text: str) -> float:
    """Reads the rate of a host's cards for training, in Gbit/s; 0: unsaid.

    Cards that are named for storage or management do not count.
    """
    total = 0.0
    for part in re.split(r"[,;](?![^(]*\))", text):
        if re.match(r"\s*(storage|management)", part, re.IGNORECASE):
            continue
        rate = re.search(r"(\d+) ?(?:gb|gbit|gbe)", part, re.IGNORECASE)
        count = re.search(r"(?:^|\s)(\d+)x", part)
        if rate:
            total += float(rate[1]) * (int(count[1]) if count else 1)
    if total == 0 and "infiniband" in text.lower():
        return 100.0
    return total


def bus_between(setup: Setup) -> float:
    """Gives the bus bandwidth between hosts, in bytes/s."""
    gbit = network_gbit(setup.inter) or 100.0
    text = setup.inter.lower()
    rdma = any(word in text for word in RDMA_WORDS)
    return GIGA * gbit / 8 * (RDMA_SHARE if rdma else TCP_SHARE)


def bus(setup: Setup) -> float:
    """Gives the bus bandwidth of the whole ring, in bytes/s."""
    if setup.hosts == 1:
        return bus_inside(setup)
    between = bus_between(setup)
    if setup.gpus == setup.hosts:
        return between
    return min(bus_inside(setup), between)
