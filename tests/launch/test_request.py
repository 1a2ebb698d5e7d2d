"""What "auto" and "all" come to, over clusters and GPUs."""

from __future__ import annotations

import dataclasses

import pytest

from tests.launch.test_job import EXPERIMENT, SCRIPT
from tfmulti.cluster import Cluster
from tfmulti.errors import UsageError
from tfmulti.hardware import VisibleGpus
from tfmulti.launch import Decision, Request, decide


def gpus(count: int) -> VisibleGpus:
    return VisibleGpus(names=tuple(map(str, range(count))))


def cluster(size: int) -> Cluster:
    return Cluster(
        workers=tuple(f"h{i}:1" for i in range(size)),
        index=size - 1,
        source="TF_CONFIG",
    )


def outcome(given=None, seen=0, **asked) -> tuple[str, int, int, str]:
    job = make(given, seen, **asked).job
    return job.strategy, job.workers, job.replicas_per_worker, job.device


def make(given=None, seen=0, **asked) -> Decision:
    facts = gpus(seen) if isinstance(seen, int) else seen
    request = Request(
        **{"script": SCRIPT, "run_dir": "/r"} | asked  # type: ignore
    )
    return decide(request, cluster=given, gpus=facts)


@pytest.mark.parametrize(
    ("asked", "given", "seen", "result"),
    [
        # auto
        ({}, None, 0, ("one", 1, 1, "CPU")),
        ({}, None, 1, ("one", 1, 1, "GPU")),
        ({}, None, 4, ("mirrored", 1, 4, "GPU")),
        ({"replicas": 2}, None, 0, ("mirrored", 1, 2, "CPU")),
        ({"replicas": 1}, None, 4, ("one", 1, 1, "GPU")),
        ({"replicas": 3}, None, 4, ("mirrored", 1, 3, "GPU")),
        ({"workers": 2}, None, 0, ("multiworker", 2, 1, "CPU")),
        ({"workers": 2}, None, 4, ("multiworker", 2, 2, "GPU")),
        ({}, cluster(3), 2, ("multiworker", 3, 2, "GPU")),
        ({}, cluster(3), 0, ("multiworker", 3, 1, "CPU")),
        ({}, cluster(1), 0, ("one", 1, 1, "CPU")),
        # by name
        ({"strategy": "one"}, None, 4, ("one", 1, 1, "GPU")),
        ({"strategy": "mirrored"}, None, 0, ("mirrored", 1, 2, "CPU")),
        ({"strategy": "mirrored"}, None, 1, ("mirrored", 1, 1, "GPU")),
        ({"strategy": "mirrored", "replicas": 9}, None, 0,
         ("mirrored", 1, 9, "CPU")),
        ({"strategy": "multiworker", "workers": 1}, None, 0,
         ("multiworker", 1, 1, "CPU")),
        ({"strategy": "multiworker", "workers": 2, "replicas": 2}, None, 0,
         ("multiworker", 2, 2, "CPU")),
        ({"strategy": "multiworker", "workers": 3}, None, 8,
         ("multiworker", 3, 2, "GPU")),
        ({"strategy": "multiworker"}, cluster(2), 8,
         ("multiworker", 2, 8, "GPU")),
        ({"strategy": "multiworker", "workers": 2}, cluster(2), 0,
         ("multiworker", 2, 1, "CPU")),
        ({"strategy": "mirrored"}, cluster(2), 0,
         ("mirrored", 1, 2, "CPU")),
    ],
)
def test_decision(asked, given, seen, result):
    assert outcome(given, seen, **asked) == result


@pytest.mark.parametrize(
    ("asked", "given", "seen", "words"),
    [
        ({"strategy": "mirored"}, None, 0, "auto, one, mirrored"),
        ({"strategy": "multiworker"}, None, 0, "--workers 2"),
        ({"strategy": "mirrored", "workers": 2}, None, 0, "one process"),
        ({"strategy": "one", "replicas": 2}, None, 0, "mirrored"),
        ({"replicas": 0}, None, 0, "--replicas=0"),
        ({"workers": -1}, None, 0, "--workers=-1"),
        ({"replicas": 9}, None, 4, "1 to 4 replica"),
        ({"strategy": "mirrored", "replicas": 9}, None, 4, "4 GPUs"),
        ({"workers": 4}, None, 2, "1 to 2 workers"),
        ({"workers": 2, "replicas": 2}, None, 3, "1 to 1 replica"),
        ({"workers": 3}, cluster(2), 0, "unset TF_CONFIG"),
    ],
)
def test_refused(asked, given, seen, words):
    with pytest.raises(UsageError) as caught:
        make(given, seen, **asked)
    assert words in str(caught.value)


def test_gpus_asked_for_by_name_must_be_there():
    absent = VisibleGpus(asked="0,1", missing="0")
    with pytest.raises(UsageError, match="CUDA_VISIBLE_DEVICES=0,1"):
        make(seen=absent, strategy="mirrored", replicas=9)
    some = VisibleGpus(names=("0",), asked="0,7", missing="7")
    assert any("'7'" in note for note in make(seen=some).notes)


def test_a_process_gets_one_slice_of_a_gpu():
    slices = VisibleGpus(names=("MIG-a", "MIG-b"))
    assert outcome(seen=slices, strategy="mirrored")[2] == 1
    assert outcome(seen=slices, workers=2) == ("multiworker", 2, 1, "GPU")
    with pytest.raises(UsageError, match="slice"):
        make(seen=slices, strategy="mirrored", replicas=2)


def test_emulation_and_broken_drivers_are_said():
    assert any("emulation" in n for n in make(strategy="mirrored").notes)
    assert not make(strategy="one").notes
    assert not make(seen=2).notes
    broken = VisibleGpus(problem="nvidia-smi failed: x")
    assert any("nvidia-smi failed" in n for n in make(seen=broken).notes)
    alone = make(cluster(2), strategy="mirrored").notes
    assert any("this host alone" in note for note in alone)


@pytest.mark.parametrize("batch", range(1, 20))
@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
def test_global_batch(batch, replicas):
    asked = {
        "experiment": dataclasses.replace(
            EXPERIMENT, global_batch_size=batch
        ),
        "script": None,
        "strategy": "mirrored",
        "replicas": replicas,
    }
    if batch < replicas:
        with pytest.raises(UsageError, match="--global_batch_size"):
            make(**asked)
        return
    uneven = [n for n in make(**asked).notes if "do not divide" in n]
    assert bool(uneven) == (batch % replicas != 0)
