"""Every combination is honoured, refused or noted: never silent."""

from __future__ import annotations

import itertools
from importlib import metadata

import pytest

from tfmulti.communication import (
    ALL_REDUCES,
    Communication,
    Nccl,
    check,
    installed_nccl,
)
from tfmulti.errors import UsageError

JOBS = {
    "one": {"replicas": 1, "workers": 1},
    "mirrored": {"replicas": 2, "workers": 1},
    "multiworker": {"replicas": 1, "workers": 2},
}
HONOURED = {
    ("mirrored", "GPU"): {"auto", "nccl", "hierarchical_copy", "one_device"},
    ("mirrored", "CPU"): {"auto", "hierarchical_copy", "one_device"},
    ("multiworker", "GPU"): {"auto", "nccl", "ring"},
    ("multiworker", "CPU"): {"auto", "ring"},
}


def _check(record, strategy, device, **more):
    return check(
        record, strategy=strategy, device=device, **JOBS[strategy], **more
    )


@pytest.mark.parametrize(
    ("job", "choice"), itertools.product(HONOURED, ALL_REDUCES)
)
def test_an_all_reduce_is_honoured_or_refused(job, choice):
    record = Communication(all_reduce=choice)
    if choice in HONOURED[job]:
        assert _check(record, *job) == ()
        return
    with pytest.raises(UsageError) as caught:
        _check(record, *job)
    assert set(caught.value.allowed.split(", ")) == HONOURED[job]


def test_nccl_without_a_gpu_is_refused_even_for_one_replica():
    with pytest.raises(UsageError, match="without a GPU"):
        _check(Communication(all_reduce="nccl"), "one", "CPU")


@pytest.mark.parametrize(
    "record",
    [
        Communication(all_reduce="ring"),
        Communication(packs=2),
        Communication(pack_mb=4),
        Communication(nccl_preset="nvlink"),
    ],
)
def test_one_replica_notes_that_nothing_is_reduced(record):
    (note,) = _check(record, "one", "GPU")
    assert "One replica" in note


def test_defaults_need_no_note_anywhere():
    for strategy, device in itertools.product(JOBS, ("GPU", "CPU")):
        assert _check(Communication(), strategy, device) == ()


@pytest.mark.parametrize(
    ("record", "strategy"),
    [
        (Communication(packs=2), "multiworker"),
        (Communication(packs=2, all_reduce="nccl"), "multiworker"),
        (Communication(packs=2), "mirrored"),
        (Communication(packs=2, all_reduce="one_device"), "mirrored"),
        (Communication(pack_mb=4), "mirrored"),
    ],
)
def test_a_pack_setting_in_the_wrong_place_is_refused(record, strategy):
    with pytest.raises(UsageError, match="--pack"):
        _check(record, strategy, "GPU")


@pytest.mark.parametrize("choice", ["nccl", "hierarchical_copy"])
def test_packs_are_honoured_where_tensorflow_packs(choice):
    record = Communication(packs=2, all_reduce=choice)
    assert _check(record, "mirrored", "GPU") == ()


def test_pack_mb_and_timeout_are_honoured_by_workers():
    record = Communication(pack_mb=4, timeout_s=60)
    assert _check(record, "multiworker", "CPU") == ()
    (note,) = _check(Communication(timeout_s=60), "mirrored", "GPU")
    assert "--collective_timeout_s" in note


@pytest.mark.parametrize("strategy", ["mirrored", "multiworker"])
def test_nccl_settings_without_a_gpu_are_named(strategy):
    record = Communication(nccl=Nccl(algorithm="Ring"))
    (note,) = _check(record, strategy, "CPU")
    assert "NCCL_ALGO" in note


def test_nccl_settings_that_another_all_reduce_never_reads_are_named():
    record = Communication(
        all_reduce="hierarchical_copy", nccl=Nccl(algorithm="Ring")
    )
    (note,) = _check(record, "mirrored", "GPU")
    assert "hierarchical_copy" in note and "NCCL_ALGO" in note


def test_a_setting_that_the_installed_nccl_does_not_read_is_refused():
    record = Communication(nccl=Nccl(nvls=1))
    with pytest.raises(UsageError, match=r"2\.16\.5"):
        _check(record, "mirrored", "GPU", nccl_version=(2, 16, 5))
    assert _check(record, "mirrored", "GPU", nccl_version=(2, 27, 7)) == ()


def test_a_topology_file_must_be_there():
    record = Communication(nccl=Nccl(topology_file="/etc/topo.xml"))
    with pytest.raises(UsageError, match="/etc/topo.xml"):
        _check(record, "mirrored", "GPU", is_file=lambda path: False)
    seen = []
    notes = _check(
        record,
        "mirrored",
        "GPU",
        is_file=lambda path: not seen.append(path),
    )
    assert notes == () and seen == ["/etc/topo.xml"]


def test_installed_nccl_reads_the_package_version():
    assert installed_nccl(lambda name: "2.27.7") == (2, 27, 7)

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    assert installed_nccl(absent) is None
