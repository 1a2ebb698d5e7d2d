"""What real tasks of Slurm and ranks of mpirun find: Slurm's own daemons, on
two nodes, and mpirun start the command, which prints its plan."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.cluster import real_slurm

pytestmark = pytest.mark.slow

TRAIN = (
    *(sys.executable, "-m", "tfmulti.run", "--run_dir", "run"),
    *("--epochs", "1", "--steps_per_epoch", "2"),
)
PLAN = (sys.executable, "-m", "tfmulti.run", "--dry_run")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The environment in which srun finds a cluster of n9 and n10."""
    reason = real_slurm.missing()
    if reason:
        pytest.skip(reason)
    with real_slurm.cluster(tmp_path_factory.mktemp("slurm")) as env:
        yield {k: v for k, v in env.items() if k != "TF_CONFIG"}


def plans(command, env, folder):
    """Runs the command once a task; gives all plans, a worker's at a time."""
    done = subprocess.run(
        [*command, "sh", "-c", '"$@" > plan.$$.json', "sh", *PLAN],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(p.read_text()) for p in folder.glob("plan.*.json")]
    return sorted(found, key=lambda plan: plan["cluster"]["index"])


def check_agreement(found, count):
    assert [p["cluster"]["index"] for p in found] == list(range(count))
    lists = {tuple(p["cluster"]["workers"]) for p in found}
    assert len(lists) == 1
    assert len(set(lists.pop())) == count
    assert {p["job"]["strategy"] for p in found} == {"multiworker"}


@pytest.mark.parametrize(
    "words",
    [
        "-N2 -n2",
        "-N2 -n4 --ntasks-per-node=2",
        "-N2 -n3",
        "-N2 -n4 -m cyclic",
        "-N2 -n4 -m plane=2",
        "-n3 -m arbitrary",
    ],
)
def test_tasks_of_a_step_agree(slurm, tmp_path, words):
    hosts = tmp_path / "hosts"
    hosts.write_text("n10\nn9\nn9\n")
    env = dict(slurm)
    if "arbitrary" in words:
        env["SLURM_HOSTFILE"] = str(hosts)
    count = int(words.split("-n")[1].split()[0])
    found = plans(["srun", "--overlap", *words.split()], env, tmp_path)
    check_agreement(found, count)
    nodes = [p["cluster"]["evidence"].split("node ")[1][:2] for p in found]
    assert nodes == sorted(nodes, reverse=True)  # n9 before n10


def test_two_jobs_at_once_share_no_port(slurm, tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    command = ["sh", "-c", 'sleep 1; "$@" > plan.$$.json', "sh", *PLAN]
    jobs = []
    for folder in folders:
        folder.mkdir()
        jobs.append(
            subprocess.Popen(
                ["srun", "-N2", "-n2", *command], env=slurm, cwd=folder
            )
        )
    assert [job.wait(120) for job in jobs] == [0, 0]
    used = []
    for folder in folders:
        texts = [p.read_text() for p in folder.glob("plan.*.json")]
        used += json.loads(texts[0])["cluster"]["workers"]
    assert len(set(used)) == 4


def trains(command, env, folder):
    done = subprocess.run(
        [*command, *TRAIN],
        env=env | {"CUDA_VISIBLE_DEVICES": "-1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 x CPU, multiworker (2 workers x 1)" in done.stdout
    assert (folder / "run" / "summary.json").exists()


def test_a_step_of_slurm_trains(slurm, tmp_path):
    trains(["srun", "-N2", "-n2"], slurm, tmp_path)


@pytest.fixture
def mpi_env():
    """The environment for mpirun."""
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed (Debian: openmpi-bin)")
    env = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
    for name in ("", "_CONFIRM"):
        env[f"OMPI_ALLOW_RUN_AS_ROOT{name}"] = "1"
    return env


MPIRUN = ("mpirun", "--oversubscribe", "-np", "2")


def test_ranks_of_mpirun_agree(mpi_env, tmp_path):
    found = plans(MPIRUN, mpi_env, tmp_path)
    check_agreement(found, 2)
    assert found[0]["cluster"]["source"] == "Open MPI"


def test_ranks_of_mpirun_train(mpi_env, tmp_path):
    trains(MPIRUN, mpi_env, tmp_path)
