"""Plans are equal to golden files, and share out what a host has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.launch.test_job import EXPERIMENT, SCRIPT
from tfmulti.cluster import Cluster, on_this_host
from tfmulti.communication import Communication
from tfmulti.launch import JOB_VARIABLE, Job, LaunchPlan, make_plan

GOLDEN = Path(__file__).parent / "golden"


def plan(job: Job, **facts) -> LaunchPlan:
    given: dict[str, Any] = {
        "cluster": None,
        "joins": False,
        "env": {},
        "gpu_names": (),
        "cores": 16,
        "python": "python3",
    }
    return make_plan(job, **given | facts)


def a_job(strategy="multiworker", workers=2, replicas=2, device="GPU", **more):
    given: dict[str, Any] = {"script": SCRIPT, "run_dir": "/runs/a"}
    return Job(
        strategy=strategy,
        workers=workers,
        replicas_per_worker=replicas,
        device=device,
        **given | more,
    )


def added(plan: LaunchPlan, name: str) -> list[str | None]:
    return [worker.env.get(name) for worker in plan.workers]


GOLDENS = {
    "one_cpu": lambda: plan(
        a_job("one", 1, 1, "CPU", script=None, experiment=EXPERIMENT),
    ),
    "two_workers_four_gpus": lambda: plan(
        a_job(
            communication=Communication.from_flags(
                nccl=["algorithm=ring"], nccl_preset="ethernet"
            ),
        ),
        cluster=on_this_host([5001, 5002]),
        gpu_names=("0", "1", "2", "3"),
        env={"NCCL_ALGO": "Tree", "PYTHONUNBUFFERED": "x"},
        notes=("A note.",),
    ),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name):
    text = json.dumps(GOLDENS[name]().to_json(), indent=2) + "\n"
    assert text == (GOLDEN / f"{name}.json").read_text()


@pytest.mark.parametrize("workers", range(1, 5))
@pytest.mark.parametrize("replicas", range(1, 4))
@pytest.mark.parametrize("prefix", ["", "GPU-f00"])
def test_each_gpu_goes_to_one_worker_at_most(workers, replicas, prefix):
    names = tuple(f"{prefix}{i}" for i in range(workers * replicas + 1))
    made = plan(
        a_job(workers=workers, replicas=replicas),
        cluster=on_this_host(range(5000, 5000 + workers)),
        gpu_names=names,
    )
    shares = [(v or "").split(",") for v in added(made, "CUDA_VISIBLE_DEVICES")]
    assert [len(share) for share in shares] == [replicas] * workers
    assert sum(shares, []) == list(names[:-1])
    assert any("GPUs are used" in note for note in made.notes)


def test_all_gpus_of_one_process_need_no_variable():
    made = plan(a_job("mirrored", 1, 2), gpu_names=("0", "1"))
    assert added(made, "CUDA_VISIBLE_DEVICES") == [None]
    assert made.notes == ()


def test_every_worker_reads_its_own_place():
    made = plan(
        a_job(workers=3, replicas=1, device="CPU"),
        cluster=on_this_host([7, 8, 9]),
    )
    for index, worker in enumerate(made.workers):
        assert worker.index == index
        place = json.loads(worker.env["TF_CONFIG"])
        assert place["task"] == {"type": "worker", "index": index}
        assert Job.from_environment(worker.env) == made.job
        assert worker.log_path == f"/runs/a/logs/worker-{index}.log"


def test_a_joining_worker_keeps_the_persons_cluster():
    cluster = Cluster(workers=("a:1", "b:1"), index=1, source="TF_CONFIG")
    made = plan(a_job(), cluster=cluster, joins=True, gpu_names=("0", "1"))
    (worker,) = made.workers
    assert worker.index == 1
    assert worker.log_path is None
    assert set(worker.env) == {JOB_VARIABLE, "TF_CPP_MIN_LOG_LEVEL"}


@pytest.mark.parametrize(
    ("workers", "cores", "within", "between"),
    [(1, 8, None, None), (2, 2, "1", "2"), (2, 16, "8", "8"),
     (4, 2, "1", "2")],
)
def test_cores_are_shared_out(workers, cores, within, between):
    made = plan(
        a_job(workers=workers, replicas=1, device="CPU"),
        cluster=on_this_host(range(5000, 5000 + workers)),
        cores=cores,
    )
    assert set(added(made, "TF_NUM_INTRAOP_THREADS")) == {within}
    assert set(added(made, "TF_NUM_INTEROP_THREADS")) == {between}


def test_what_the_person_set_stays():
    env = {
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "TF_NUM_INTRAOP_THREADS": "3",
        "TF_NUM_INTEROP_THREADS": "3",
        "OMP_NUM_THREADS": "3",
        "PYTHONUNBUFFERED": "",
        "CUDA_VISIBLE_DEVICES": "",
        "http_proxy": "http://proxy:1",
        "no_grpc_proxy": "mine",
    }
    made = plan(
        a_job(replicas=1, device="CPU"),
        cluster=on_this_host([7, 8]),
        env=env,
    )
    for worker in made.workers:
        assert set(worker.env) == {JOB_VARIABLE, "TF_CONFIG"}


@pytest.mark.parametrize("proxy", ["http_proxy", "https_proxy", "grpc_proxy"])
def test_workers_do_not_talk_through_a_proxy(proxy):
    cluster = Cluster(
        workers=("h1:1", "h1:2", "[::1]:3"), index=0, source="TF_CONFIG"
    )
    env = {proxy: "http://proxy:1", "no_proxy": "intern,h1"}
    made = plan(
        a_job(workers=3, replicas=1), cluster=cluster, joins=True, env=env
    )
    assert added(made, "no_grpc_proxy") == ["h1,[::1],intern"]


def test_nccl_never_overwrites_and_says_so():
    made = GOLDENS["two_workers_four_gpus"]()
    assert set(added(made, "NCCL_ALGO")) == {None}
    assert any("NCCL_ALGO=Tree" in note for note in made.notes)
