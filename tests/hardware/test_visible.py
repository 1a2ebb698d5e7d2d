"""CUDA_VISIBLE_DEVICES means what it means to CUDA."""

from __future__ import annotations

import pytest

from tfmulti.hardware import Gpu, GpuSearch, VisibleGpus, visible_gpus

UUIDS = ("GPU-aaaa1111", "GPU-aaaa2222", "GPU-bbbb3333", "GPU-cccc4444")
FOUR = GpuSearch(
    gpus=tuple(
        Gpu(index=i, uuid=uuid, name="L4", memory_bytes=None)
        for i, uuid in enumerate(UUIDS)
    )
)


def see(value: str | None) -> VisibleGpus:
    env = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    return visible_gpus(env, find=lambda: FOUR)


@pytest.mark.parametrize(
    ("value", "names", "missing"),
    [
        (None, ("0", "1", "2", "3"), None),
        ("2", ("2",), None),
        ("3,1", ("3", "1"), None),
        (" 0 , 2 ", ("0", "2"), None),
        ("GPU-bbbb3333,0", ("GPU-bbbb3333", "0"), None),
        ("GPU-b", ("GPU-b",), None),
        ("GPU-aaaa", (), "GPU-aaaa"),
        ("0,7,1", ("0",), "7"),
        ("0,-1,1", ("0",), None),
        ("1,1", ("1",), "1"),
        ("all", (), "all"),
        ("MIG-x,MIG-y", ("MIG-x", "MIG-y"), None),
    ],
)
def test_entries(value, names, missing):
    seen = see(value)
    assert (seen.names, seen.missing) == (names, missing)
    assert seen.asked == value


@pytest.mark.parametrize("value", ["", " ", "-1", "NoDevFiles"])
def test_hidden_gpus_are_not_even_looked_for(value):
    def find():
        raise AssertionError("searched")

    seen = visible_gpus({"CUDA_VISIBLE_DEVICES": value}, find=find)
    assert seen == VisibleGpus()


def test_a_process_gets_one_slice():
    assert see("MIG-x,MIG-y").per_process == 1
    assert see("0,1").per_process == 2


def test_names_on_a_host_without_gpus():
    seen = visible_gpus(
        {"CUDA_VISIBLE_DEVICES": "0,1"}, find=lambda: GpuSearch(gpus=())
    )
    assert (seen.names, seen.asked, seen.missing) == ((), "0,1", "0")
