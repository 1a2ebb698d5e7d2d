"""What init builds, for every request, cluster and number of GPUs."""

from __future__ import annotations

import pytest

from tfmulti.cluster import Cluster
from tfmulti.errors import UsageError
from tfmulti.strategy.choose import Request, choose

PAIR = Cluster(workers=("a:1", "b:1"), index=0, source="TF_CONFIG")
LONE = Cluster(workers=("a:1",), index=0, source="TF_CONFIG")


@pytest.mark.parametrize(
    ("strategy", "replicas", "cluster", "gpus", "expected"),
    [
        ("auto", None, None, 0, ("one", "CPU", 1)),
        ("auto", None, None, 1, ("one", "GPU", 1)),
        ("auto", None, None, 4, ("mirrored", "GPU", 4)),
        ("auto", 1, None, 4, ("one", "GPU", 1)),
        ("auto", 3, None, 4, ("mirrored", "GPU", 3)),
        ("auto", 3, None, 0, ("mirrored", "CPU", 3)),
        ("auto", None, PAIR, 0, ("multiworker", "CPU", 1)),
        ("auto", 2, PAIR, 0, ("multiworker", "CPU", 2)),
        ("auto", None, PAIR, 4, ("multiworker", "GPU", 4)),
        ("auto", None, LONE, 0, ("one", "CPU", 1)),
        ("auto", None, LONE, 2, ("mirrored", "GPU", 2)),
        ("one", None, PAIR, 4, ("one", "GPU", 1)),
        ("mirrored", None, None, 0, ("mirrored", "CPU", 2)),
        ("mirrored", 1, None, 0, ("mirrored", "CPU", 1)),
        ("mirrored", None, PAIR, 2, ("mirrored", "GPU", 2)),
        ("multiworker", None, LONE, 0, ("multiworker", "CPU", 1)),
        ("multiworker", 2, PAIR, 2, ("multiworker", "GPU", 2)),
    ],
)
def test_the_choice(strategy, replicas, cluster, gpus, expected):
    request = Request(strategy=strategy, replicas=replicas)
    choice = choose(request, cluster, gpus)
    assert (choice.kind, choice.device, choice.replicas) == expected
    assert choice.cluster is (cluster if expected[0] == "multiworker" else None)


def test_emulated_replicas_are_said_to_be_no_speed_up():
    (note,) = choose(Request(strategy="mirrored"), None, 0).notes
    assert "2 replicas on logical CPU devices, an emulation" in note
    assert choose(Request(strategy="mirrored"), None, 2).notes == ()


@pytest.mark.parametrize("strategy", ["one", "mirrored"])
def test_leaving_a_cluster_unused_is_said(strategy):
    notes = choose(Request(strategy=strategy), PAIR, 2).notes
    assert any("names 2 workers" in note for note in notes)


def test_multiworker_without_a_cluster_is_refused():
    with pytest.raises(UsageError, match="TF_CONFIG"):
        choose(Request(strategy="multiworker"), None, 4)


def test_more_replicas_than_gpus_are_refused_with_their_number():
    with pytest.raises(UsageError, match="up to 2"):
        choose(Request(strategy="mirrored", replicas=9), None, 2)


@pytest.mark.parametrize(
    "values",
    [
        {"strategy": "mirored"},
        {"replicas": 0},
        {"replicas": 1.5},
        {"strategy": "one", "replicas": 2},
    ],
)
def test_a_wrong_request_is_refused(values):
    with pytest.raises(UsageError):
        Request(**values)
