"""mpirun, Kubernetes and a list of hosts."""

from __future__ import annotations

import json

import pytest

from tests.cluster.recorded import open_mpi
from tfmulti.cluster import from_hosts, own_gpus, resolve
from tfmulti.errors import UsageError


def never(command):
    raise AssertionError(f"asked {command}")


def test_ranks_on_one_host_ask_nobody():
    clusters = [resolve(open_mpi(2, 2, r), ask=never) for r in range(2)]
    assert clusters[0].workers == clusters[1].workers
    assert [c.index for c in clusters] == [0, 1]
    hosts = [address.split(":")[0] for address in clusters[0].workers]
    assert hosts == ["127.0.0.1"] * 2
    assert [own_gpus(list("0123"), c) for c in clusters] == [
        ("0", "1"),
        ("2", "3"),
    ]


def test_a_wrapper_that_binds_gpus_is_respected():
    env = open_mpi(2, 2, 1, CUDA_VISIBLE_DEVICES="1")
    assert own_gpus(["1"], resolve(env, ask=never)) == ("1",)


def test_two_mpiruns_on_a_host_have_ports_of_their_own():
    four = open_mpi(2, 2, 0)
    five = open_mpi(2, 2, 0, PMIX_NAMESPACE="prterun-vm-12@1")
    first, second = resolve(four), resolve(five)
    assert not set(first.workers) & set(second.workers)
    assert first.identity != second.identity


@pytest.mark.parametrize("rank", range(3))
def test_ranks_on_several_hosts_tell_one_another(rank):
    hosts = json.dumps(["a", "a", "b"])
    cluster = resolve(open_mpi(3, 2, rank), ask=lambda command: hosts)
    assert cluster.index == rank
    port = int(cluster.workers[0].split(":")[1])
    assert cluster.workers == (f"a:{port}", f"a:{port + 1}", f"b:{port}")


@pytest.mark.parametrize("answer", [None, "", "[]", '["a"]', "{}"])
def test_without_mpi4py_the_hosts_are_asked_for(answer):
    with pytest.raises(UsageError, match="mpi4py"):
        resolve(open_mpi(4, 2, 1), ask=lambda command: answer)


def pod(index: int, **more: str) -> dict[str, str]:
    return {
        "JOB_COMPLETION_INDEX": str(index),
        "HOSTNAME": f"digits-{index}",
        "TFMULTI_NUM_WORKERS": "3",
        **more,
    }


@pytest.mark.parametrize("index", range(3))
def test_indexed_job(index):
    cluster = resolve(pod(index, TFMULTI_SERVICE="peers"))
    assert cluster.index == index
    assert cluster.workers == tuple(
        f"digits-{i}.peers:2222" for i in range(3)
    )
    assert resolve(pod(index)).workers[0] == "digits-0.digits:2222"


def test_an_indexed_job_of_separate_runs_is_no_cluster():
    env = pod(1)
    del env["TFMULTI_NUM_WORKERS"]
    assert resolve(env) is None


@pytest.mark.parametrize("worker", range(4))
def test_job_set(worker):
    job, index = divmod(worker, 2)
    env = pod(
        index,
        HOSTNAME=f"set-w-{job}-{index}",
        TFMULTI_NUM_WORKERS="4",
        TFMULTI_NUM_JOBS="2",
        JOBSET_NAME="set",
        REPLICATED_JOB_NAME="w",
        JOB_INDEX=str(job),
    )
    cluster = resolve(env)
    assert cluster.index == worker
    assert cluster.address == f"{env['HOSTNAME']}.set:2222"
    assert len(cluster.workers) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"HOSTNAME": "other"},
        {"HOSTNAME": "digits-1"},
        {"JOB_COMPLETION_INDEX": "3", "HOSTNAME": "digits-3"},
        {"JOBSET_NAME": "set"},
        {"JOBSET_NAME": "set", "REPLICATED_JOB_NAME": "w",
         "TFMULTI_NUM_JOBS": "2"},
        {"TFMULTI_NUM_WORKERS": "three"},
    ],
)  # fmt: skip
def test_pods_that_contradict_are_refused(wrong):
    with pytest.raises(UsageError):
        resolve(pod(0) | wrong)


@pytest.mark.parametrize(
    ("text", "index", "env", "names", "place", "own"),
    [
        ("a,b", None, {}, ["b"], 1, "b:2222"),
        ("n[9-10]", None, {}, ["n10", "x"], 1, "n10:2222"),
        ("a:1,a:2", 1, {}, ["a"], 1, "a:2"),
        ("a,a,b", 1, {}, ["a"], 1, "a:2223"),
        ("a,b", None, open_mpi(2, 1, 1), ["x"], 1, "b:2222"),
        ("a,b", None, {"TFMULTI_PORT": "4000"}, ["a"], 0, "a:4000"),
        ("10.0.0.1:7,[::1]:8", 1, {}, [], 1, "[::1]:8"),
    ],
)
def test_hosts(text, index, env, names, place, own):
    cluster = from_hosts(text, index, env, names)
    assert (cluster.index, cluster.address) == (place, own)


@pytest.mark.parametrize(
    ("text", "index", "names"),
    [
        ("a,b", None, ["c"]),
        ("a:1,a:2", None, ["a"]),
        ("a,b:1", 0, []),
        ("a,b", 2, []),
        ("a:1,a:1", 0, []),
        ("a:99999,b:1", 0, []),
    ],
)
def test_wrong_hosts_are_refused(text, index, names):
    with pytest.raises(UsageError):
        from_hosts(text, index, {}, names)


def test_an_evaluator_is_no_worker():
    kinds = {"worker": ["a:1", "b:1"], "evaluator": ["c:1"]}
    task = {"type": "worker", "index": 1}
    env = {"TF_CONFIG": json.dumps({"cluster": kinds, "task": task})}
    cluster = resolve(env | open_mpi(2, 2, 0))
    assert cluster is not None and cluster.source == "TF_CONFIG"
    assert cluster.workers == ("a:1", "b:1")
