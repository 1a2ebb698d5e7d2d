"""Tasks of one step agree on the list, and each finds a place of its own."""

from __future__ import annotations

import pytest

from tests.cluster.recorded import NODES, SLURM_STEPS, slurm
from tfmulti.cluster import own_gpus, resolve
from tfmulti.cluster.slurm import from_slurm
from tfmulti.errors import UsageError


def seen(envs, answer=NODES):
    return [from_slurm(env, lambda command: answer) for env in envs]


@pytest.mark.parametrize("name", SLURM_STEPS)
def test_every_distribution_gives_one_list_and_each_place_once(name):
    envs = slurm(name)
    clusters = seen(envs)
    assert len({cluster.workers for cluster in clusters}) == 1
    assert sorted(c.index for c in clusters) == list(range(len(envs)))
    for env, cluster in zip(envs, clusters, strict=True):
        host = {"n9": "10.0.0.9", "n10": "10.0.0.10"}[env["SLURMD_NODENAME"]]
        assert cluster.address.startswith(f"{host}:")


@pytest.mark.parametrize("name", ["plain", "several_a_node"])
def test_filled_node_by_node_a_worker_is_its_rank(name):
    assert [cluster.index for cluster in seen(slurm(name))] == list(
        range(len(slurm(name)))
    )


def test_addresses():
    (first, *_) = seen(slurm("several_a_node"))
    assert first.workers == (
        "10.0.0.9:20112",
        "10.0.0.9:20113",
        "10.0.0.10:20112",
    )
    assert first.source == "Slurm step 7.0"
    assert "n[9-10]" in first.evidence


def test_names_where_scontrol_does_not_answer():
    (first, _) = seen(slurm("plain"), answer=None)
    assert first.workers == ("n9:20112", "n10:20112")


def test_nodes_that_share_an_address_get_different_ports():
    same = NODES.replace("10.0.0.10", "127.0.0.1").replace(
        "10.0.0.9", "127.0.0.1"
    )
    (first, *_) = seen(slurm("several_a_node"), answer=same)
    assert first.workers == tuple(f"127.0.0.1:{20112 + i}" for i in range(3))


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("other", [(8, 0), (7, 5), (106, 0), (6, 1)])
def test_jobs_and_steps_on_one_node_have_ports_of_their_own(step, other):
    job, other_step = other
    here = seen(slurm("cyclic", SLURM_STEP_ID=str(step)))[0]
    envs = slurm(
        "cyclic", SLURM_JOB_ID=str(job), SLURM_STEP_ID=str(other_step)
    )
    there = seen(envs)[0]
    assert not set(here.workers) & set(there.workers)
    assert here.identity != there.identity


def test_ports_that_slurm_reserved_come_first():
    envs = slurm("several_a_node", SLURM_STEP_RESV_PORTS="9,12000-12001")
    assert seen(envs)[0].workers[1] == "10.0.0.9:12001"
    few = slurm("several_a_node", SLURM_STEP_RESV_PORTS="12000")
    assert seen(few)[0].workers[1] == "10.0.0.9:20113"
    asked = slurm("plain", TFMULTI_PORT="4000")
    assert seen(asked)[0].workers[1] == "10.0.0.10:4000"


@pytest.mark.parametrize(
    ("given", "shares"),
    [
        # srun --gpus-per-node=2: both of the step's, for all its tasks.
        ({"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_GPUS_ON_NODE": "2"},
         [("0",), ("1",)]),
        # --gpus-per-task=1 --gpu-bind=none: no variable names a GPU.
        ({"SLURM_GPUS_ON_NODE": "2"}, [("0",), ("1",)]),
        # No GPU was asked for, and all are there.
        ({}, [("0",), ("1",)]),
        # --gpus-per-task=1: bound; this task sees one.
        ({"CUDA_VISIBLE_DEVICES": "0", "SLURM_GPUS_ON_NODE": "2"},
         [("0",), ("0",)]),
    ],
)  # fmt: skip
def test_gpus_of_the_step_are_shared_and_bound_ones_kept(given, shares):
    clusters = seen(slurm("several_a_node", **given))
    visible = given.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
    assert [own_gpus(visible, c) for c in clusters[:2]] == shares


def test_too_few_gpus_are_refused():
    shared = {"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_GPUS_ON_NODE": "2"}
    clusters = seen(slurm("cyclic", **shared))
    with pytest.raises(UsageError, match="2 GPUs for 3 workers"):
        own_gpus(["0", "1"], clusters[0])
    assert own_gpus(["0", "1"], clusters[1]) == ("0", "1")
    assert own_gpus([], clusters[0]) == ()


def test_outside_of_a_step_there_is_no_cluster():
    env = slurm("plain")[0]
    batch = {k: v for k, v in env.items() if not k.startswith("SLURM_STEP")}
    alone = env | {
        "SLURM_STEP_NUM_TASKS": "1",
        "SLURM_STEP_TASKS_PER_NODE": "1",
        "SLURM_STEP_NODELIST": "n9",
    }
    for given in (batch, alone, {}):
        assert resolve(given, ask=lambda command: NODES) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"SLURM_NODEID": "2"},
        {"SLURM_LOCALID": "1"},
        {"SLURM_STEP_NUM_TASKS": "3"},
        {"SLURM_STEP_NODELIST": "n9"},
        {"SLURMD_NODENAME": "n10"},
        {"SLURM_STEP_NODELIST": "n[9-"},
        {"SLURM_STEP_TASKS_PER_NODE": "2x1"},
        {"SLURM_PROCID": "0", "SLURM_LOCALID": "x"},
        {"TFMULTI_PORT": "http"},
    ],
)
def test_variables_that_contradict_are_refused(wrong):
    with pytest.raises(UsageError) as caught:
        seen([slurm("plain")[0] | wrong])
    assert "\n" not in str(caught.value)
