"""A job survives its way to the workers, and refuses what cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tfmulti.communication import Communication
from tfmulti.config import Experiment
from tfmulti.errors import UsageError
from tfmulti.launch import JOB_VARIABLE, Job, Script

EXPERIMENT = Experiment(
    name="tiny",
    summary="Nothing much.",
    task="classification",
    model="convnet",
    model_config={"width": 4},
    data="synthetic",
    epochs=1,
    global_batch_size=8,
    learning_rate=0.1,
)
SCRIPT = Script(path="dir/train.py", argv=("--its", "own flags", "--"))


@pytest.mark.parametrize("what", [{"experiment": EXPERIMENT},
                                  {"script": SCRIPT},
                                  {"script": Script(module="a.b")}])
def test_round_trip_through_the_environment(what):
    job = Job(
        strategy="multiworker",
        workers=3,
        replicas_per_worker=2,
        device="GPU",
        communication=Communication.from_flags(
            pack_mb=4.0, nccl=["algorithm=ring"]
        ),
        run_dir="/tmp/run",
        data_dir="/data",
        **what,
    )
    env = {JOB_VARIABLE: json.dumps(job.to_json())}
    assert Job.from_environment(env) == job
    assert job.replicas == 6


def test_a_worker_without_a_job_says_how_to_start():
    with pytest.raises(UsageError, match="python -m tfmulti.run"):
        Job.from_environment({})


@pytest.mark.parametrize(
    "wrong",
    [
        {"strategy": "auto"},
        {"device": "TPU"},
        {"workers": 0},
        {"strategy": "mirrored", "workers": 2},
        {"strategy": "one", "replicas_per_worker": 2},
        {"script": SCRIPT},
        {"experiment": None},
    ],
)
def test_what_cannot_be(wrong):
    right: dict[str, Any] = {
        "strategy": "multiworker",
        "device": "CPU",
        "experiment": EXPERIMENT,
        "run_dir": "r",
    }
    Job(**right)
    with pytest.raises(UsageError):
        Job(**right | wrong)


@pytest.mark.parametrize(
    ("script", "name"),
    [
        (Script(path="a/b/train.py"), "train"),
        (Script(path="train"), "train"),
        (Script(module="pkg.train"), "train"),
        (Script(module="train"), "train"),
    ],
)
def test_script_name(script, name):
    assert script.name == name


@pytest.mark.parametrize("both", [{}, {"path": "a", "module": "b"}])
def test_a_script_is_a_file_or_a_module(both):
    with pytest.raises(UsageError):
        Script(**both)
