"""The communication record: flags, JSON, validation."""

from __future__ import annotations

import json

import pytest

from tfmulti.communication import Communication, Nccl
from tfmulti.errors import UsageError


def test_no_flags_is_the_default_record():
    assert Communication.from_flags() == Communication()
    assert Communication().effective_nccl().variables() == {}


def test_flags_become_the_record():
    record = Communication.from_flags(
        all_reduce="ring",
        pack_mb=4,
        timeout_s=30.0,
        nccl=["algorithm=Ring", "NCCL_DEBUG=info"],
        nccl_preset="pcie",
    )
    assert record == Communication(
        all_reduce="ring",
        pack_mb=4,
        timeout_s=30.0,
        nccl=Nccl(algorithm="Ring", debug="INFO"),
        nccl_preset="pcie",
    )
    assert record.pack_bytes == 4_000_000


@pytest.mark.parametrize(
    "record",
    [
        Communication(),
        Communication(all_reduce="nccl", packs=2, nccl=Nccl(shm_disable=True)),
        Communication(pack_mb=0.5, timeout_s=1.5, nccl_preset="efa"),
    ],
)
def test_json_gives_the_record_back(record):
    text = json.dumps(record.to_json())
    assert Communication.from_json(json.loads(text)) == record


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"all_reduce": "rings"}, "--all_reduce=rings"),
        ({"packs": -1}, "--packs=-1"),
        ({"packs": 1.5}, "--packs=1.5"),
        ({"pack_mb": 0}, "--pack_mb=0"),
        ({"pack_mb": float("nan")}, "--pack_mb=nan"),
        ({"timeout_s": -2}, "--collective_timeout_s=-2"),
        ({"timeout_s": float("inf")}, "--collective_timeout_s=inf"),
        ({"nccl_preset": "wifi"}, "--nccl_preset=wifi"),
    ],
)
def test_a_wrong_value_is_refused_by_name(values, named):
    with pytest.raises(UsageError) as caught:
        Communication(**values)
    assert caught.value.received == named
