"""Links are told apart, and better ones are never slower."""

from __future__ import annotations

import pytest

from tfmulti.errors import UsageError
from tfmulti.planner import links
from tfmulti.planner.facts import Setup, find_work, gpus, works
from tfmulti.planner.step import Constants, predict

GPUS = gpus()


def setup(gpu: str = "A100 SXM4 80GB", **changes: object) -> Setup:
    work = find_work(works(), "ResNet-50", "")
    assert work is not None
    values = {"precision": "FP16", "gpus": 8, **changes}
    return Setup(gpu=GPUS[gpu], work=work, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gpu", "intra", "kind"),
    [
        ("A100 SXM4 80GB", "not stated", "nvlink"),
        ("A100 PCIe 80GB", "not stated", "pcie"),
        ("A100 PCIe 80GB", "PCIe 4.0 + NVLink bridge", "bridge"),
        ("RTX A6000", "PCIe4 (bridge state not stated)", "pcie"),
        ("RTX A6000", "PCIe4, no P2P, no bridge", "no_p2p"),
        ("RTX 4090", "PCIe4", "no_p2p"),
    ],
)
def test_kinds(gpu: str, intra: str, kind: str) -> None:
    assert links.kind_inside(setup(gpu, intra=intra)) == kind


@pytest.mark.parametrize(
    ("text", "gbit"),
    [
        ("none", 0),
        ("25 GbE RDMA", 25),
        ("8x200Gb HDR InfiniBand (DGX A100)", 1600),
        ("2x ConnectX-6 IB HDR 200Gb/Sec", 400),
        ("Storage: 2x ConnectX-6 IB HDR 200Gb/sec, Management: 1x Ethernet "
         "1Gb/Sec, Compute: 4x ConnectX-6 IB HDR 200Gb/Sec", 800),
    ],
)
def test_network_rates(text: str, gbit: float) -> None:
    assert links.network_gbit(text) == gbit


def test_measured_buses_are_met_within_a_quarter() -> None:
    # A008 and A009 of allreduce.csv, GB/s.
    assert links.bus(setup()) == pytest.approx(232e9, rel=0.25)
    assert links.bus(setup("H100 SXM5")) == pytest.approx(370e9, rel=0.25)


def test_a_slower_network_is_never_faster() -> None:
    speeds = [
        predict(setup(gpus=16, hosts=2, inter=net), 0.3, Constants())
        for net in ("10 GbE TCP", "25 GbE TCP", "8x200Gb HDR InfiniBand")
    ]
    rates = [step.units_per_s for step in speeds]
    assert rates == sorted(rates) and rates[0] < rates[-1]


def test_one_gpu_exchanges_nothing() -> None:
    step = predict(setup(gpus=1), 0.3, Constants())
    assert step.exchange_s == 0 and step.efficiency == 1


def test_fewer_gpus_than_hosts_are_refused() -> None:
    with pytest.raises(UsageError, match="2 GPUs on 4 hosts"):
        setup(gpus=2, hosts=4)
