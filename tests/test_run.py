"""The command line, from outside: help, plans, and every wrong input.

Each wrong input must give one line, exit code 2 and no traceback within two
seconds, so these run the command as a person would, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tfmulti import cli, config, run

LIMIT_S = 2.0
HELP_LIMIT_S = 1.0

TWO_WORKERS = json.dumps(
    {
        "cluster": {"worker": ["127.0.0.1:5001", "127.0.0.1:5002"]},
        "task": {"type": "worker", "index": 1},
    }
)


class Outcome:
    """What a command did: its exit code, its texts, how long it took."""

    def __init__(self, words, folder: Path, env: dict[str, str]):
        clean = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=folder,
            env=clean | {"CUDA_VISIBLE_DEVICES": "-1"} | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.took_s = time.monotonic() - begun
        self.code, self.out, self.err = (
            done.returncode,
            done.stdout,
            done.stderr,
        )


@pytest.fixture
def command(tmp_path):
    """Runs `python -m tfmulti.run` in an empty folder."""

    def run_it(*words: str, **env: str) -> Outcome:
        return Outcome(["tfmulti.run", *words], tmp_path, env)

    return run_it


def refused(outcome: Outcome, *words: str) -> None:
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("tfmulti: "), outcome.err
    for word in words:
        assert word in lines[0]
    assert outcome.took_s < LIMIT_S


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--strategy mirored", ["mirored", "mirrored"]),
        ("--experiment digit_cnn", ["digit_cnn", "digits_cnn"]),
        ("--precision float8", ["float8", "mixed_bfloat16"]),
        ("--nccl algoritm=ring", ["algoritm", "algorithm"]),
        ("--nccl algorithm=rng", ["rng", "Ring"]),
        ("--nccl algorithm", ["algorithm"]),
        ("--nccl_preset nvlnk", ["nvlnk", "nvlink"]),
        ("--all_reduce rng", ["rng", "ring"]),
        ("--strategy mirrored --all_reduce nccl", ["nccl", "GPU"]),
        ("--strategy mirrored --all_reduce ring", ["ring", "mirrored"]),
        ("--strategy mirrored --replicas 8 --global_batch_size 4",
         ["--global_batch_size=4", "8"]),
        ("--epochs 0", ["--epochs"]),
        ("--epochs many", ["epochs", "many"]),
        ("--global_batch_size 0", ["--global_batch_size"]),
        ("--learning_rate -1", ["--learning_rate"]),
        ("--steps_per_epoch 0", ["--steps_per_epoch"]),
        ("--replicas 0", ["--replicas"]),
        ("--workers 0", ["--workers"]),
        ("--strategy one --replicas 2", ["--replicas=2"]),
        ("--strategy mirrored --workers 2", ["--workers=2"]),
        ("--strategy multiworker", ["--workers", "TF_CONFIG"]),
        ("--data images:nowhere", ["nowhere"]),
        ("--data images:empty", ["empty"]),
        ("--data text:nowhere/*.txt", ["nowhere/*.txt"]),
        ("--data cifar", ["cifar", "digits"]),
        ("--data digits --data_dir nowhere", ["nowhere"]),
        ("--no_such_flag", ["no_such_flag"]),
        ("--flagfile nowhere", ["nowhere"]),
        ("nowhere.py", ["nowhere.py"]),
        ("empty", ["empty", "folder"]),
        ("-m nowhere.at.all", ["nowhere.at.all"]),
        ("-m", ["-m"]),
        ("--run_dir here.py/r", ["here.py/r", "Not a directory"]),
        ("--run_dir here.py --strategy multiworker --workers 2 here.py",
         ["here.py", "File exists"]),
        ("--epochs 2 here.py", ["--epochs=2", "script"]),
        ("--data digits here.py --data x", ["--data=digits"]),
    ],
)
def test_wrong_flags(command, tmp_path, line, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "here.py").write_text("")
    refused(command(*line.split()), *words)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{not json", ["not JSON"]),
        ('{"task": {"type": "worker", "index": 0}}', ["cluster"]),
        ('{"cluster": {"worker": ["a:1"]}}', ["task"]),
        (TWO_WORKERS.replace('"index": 1', '"index": 2'), ["0 to 1"]),
        (TWO_WORKERS.replace('"type": "worker"', '"type": "evaluator"'),
         ["evaluator"]),
        (TWO_WORKERS.replace(":5002", ""), ["127.0.0.1"]),
        (TWO_WORKERS.replace("5002", "5001"), ["2 times"]),
    ],
)
@pytest.mark.parametrize("strategy", ["auto", "multiworker"])
def test_malformed_tf_config(command, value, words, strategy):
    outcome = command("--strategy", strategy, TF_CONFIG=value)
    refused(outcome, "TF_CONFIG", *words)


def test_workers_that_contradict_tf_config(command):
    refused(command("--workers", "3", TF_CONFIG=TWO_WORKERS), "--workers=3")


def fake_driver(folder: Path, count: int) -> str:
    """Puts an nvidia-smi that lists `count` GPUs on a path; gives that."""
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    lines = [
        f"{i}, GPU-{i:08d}-0000-0000-0000-000000000000, NVIDIA L4, 23034"
        for i in range(count)
    ]
    program.write_text("#!/bin/sh\ncat <<END\n" + "\n".join(lines) + "\nEND\n")
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("line", "visible", "words"),
    [
        ("--strategy mirrored --replicas 9", "0,1,2,3", ["4 GPU"]),
        ("--strategy mirrored --replicas 9", "2,GPU-00000003", ["2 GPU"]),
        ("--strategy mirrored", "7", ["CUDA_VISIBLE_DEVICES=7"]),
        ("--strategy multiworker --workers 5", "0,1,2,3", ["4 GPU"]),
        ("--strategy multiworker --workers 2 --replicas 3", "0,1,2,3",
         ["1 to 2"]),
    ],
)
def test_more_than_the_gpus_that_are_there(
    command, tmp_path, line, visible, words
):
    outcome = command(
        *line.split(),
        CUDA_VISIBLE_DEVICES=visible,
        PATH=fake_driver(tmp_path, 4),
    )
    refused(outcome, *words)


def test_gpus_named_on_a_host_without(command, tmp_path):
    outcome = command(
        *"--strategy mirrored --replicas 9".split(),
        CUDA_VISIBLE_DEVICES="0,1",
        PATH=fake_driver(tmp_path, 0),
    )
    refused(outcome, "CUDA_VISIBLE_DEVICES=0,1")


def test_help_is_quick_and_names_every_flag(command):
    outcome = min(
        (command("--help") for _ in range(3)), key=lambda o: o.took_s
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.took_s < HELP_LIMIT_S
    for flag in run.FLAGS:
        assert f"--{flag.name}" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_the_flags_are_those_that_were_promised():
    promised = (
        "strategy experiment list_experiments epochs global_batch_size "
        "learning_rate precision seed data data_dir run_dir steps_per_epoch "
        "dry_run replicas workers all_reduce pack_mb packs "
        "collective_timeout_s nccl nccl_preset version help flagfile"
    )
    assert {flag.name for flag in run.FLAGS} == set(promised.split())


def test_list_experiments(capsys):
    assert run.main(["--list_experiments"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == len(config.experiment_names())
    for name in config.experiment_names():
        assert name in out
    assert out.count("(default)") == 1


def planned(capsys, tmp_path, *words, env=None):
    env = {"CUDA_VISIBLE_DEVICES": "-1"} | (env or {})
    words = ("--run_dir", str(tmp_path / "r"), "--dry_run", *words)
    assert run.main(words, env=env) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert not (tmp_path / "r").exists()
    return json.loads(out)


def test_overrides_reach_the_plan(capsys, tmp_path):
    plan = planned(
        capsys,
        tmp_path,
        *"--strategy mirrored --epochs 3 --global_batch_size 9 --seed 5 "
        "--learning_rate 0.5 --precision mixed_bfloat16 --data synthetic "
        "--steps_per_epoch 4".split(),
    )
    experiment = plan["job"]["experiment"]
    wanted = {
        "name": config.DEFAULT_EXPERIMENT,
        "epochs": 3,
        "global_batch_size": 9,
        "seed": 5,
        "learning_rate": 0.5,
        "precision": "mixed_bfloat16",
        "data": "synthetic",
        "steps_per_epoch": 4,
    }
    assert {name: experiment[name] for name in wanted} == wanted
    assert plan["job"]["replicas_per_worker"] == 2
    assert any("emulation" in note for note in plan["notes"])
    assert any("do not divide" in note for note in plan["notes"])


def test_flagfile_and_line_together(capsys, tmp_path):
    file = tmp_path / "flags"
    file.write_text("--strategy=mirrored\n--epochs=7\n")
    plan = planned(capsys, tmp_path, "--flagfile", str(file), "--replicas=3")
    job = plan["job"]
    assert job["experiment"]["epochs"] == 7
    assert job["replicas_per_worker"] == 3


def test_several_workers_get_ports_of_their_own(capsys, tmp_path):
    plan = planned(
        capsys, tmp_path, "--strategy", "multiworker", "--workers", "3",
        "--nccl", "debug=INFO",
    )
    assert [worker["index"] for worker in plan["workers"]] == [0, 1, 2]
    clusters = [
        json.loads(worker["env"]["TF_CONFIG"])["cluster"]["worker"]
        for worker in plan["workers"]
    ]
    assert clusters[0] == clusters[1] == clusters[2]
    assert len(set(clusters[0])) == 3
    for worker in plan["workers"]:
        assert worker["env"]["NCCL_DEBUG"] == "INFO"


def test_tf_config_joins_as_its_worker(capsys, tmp_path):
    plan = planned(capsys, tmp_path, env={"TF_CONFIG": TWO_WORKERS})
    assert plan["job"]["strategy"] == "multiworker"
    assert plan["job"]["workers"] == 2
    (worker,) = plan["workers"]
    assert worker["index"] == 1
    assert "TF_CONFIG" not in worker["env"]
    assert worker["log_path"] is None


def test_gpus_are_divided_among_workers(capsys, tmp_path):
    path = fake_driver(tmp_path, 4)
    outcome = Outcome(
        ["tfmulti.run", "--workers", "2", "--dry_run", "--all_reduce", "nccl"],
        tmp_path,
        {"PATH": path, "CUDA_VISIBLE_DEVICES": "3,2,1,0"},
    )
    assert outcome.code == 0, outcome.err
    workers = json.loads(outcome.out)["workers"]
    assert [w["env"]["CUDA_VISIBLE_DEVICES"] for w in workers] == [
        "3,2",
        "1,0",
    ]


def test_a_script_keeps_its_own_flags(capsys, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    plan = planned(
        capsys, tmp_path, "--replicas", "2", str(script), "--epochs", "x",
        "--dry_run", "--",
    )
    assert plan["job"]["script"] == {
        "path": str(script),
        "module": None,
        "argv": ["--epochs", "x", "--dry_run", "--"],
    }
    assert plan["job"]["experiment"] is None


@pytest.mark.parametrize(
    ("words", "name"), [([], config.DEFAULT_EXPERIMENT),
                        (["-m", "json.tool"], "tool")]
)
def test_run_dir_has_the_name_and_the_time(capsys, words, name):
    env = {"CUDA_VISIBLE_DEVICES": "-1"}
    assert run.main(["--dry_run", *words], env=env, clock=lambda: 0.0) == 0
    run_dir = json.loads(capsys.readouterr().out)["job"]["run_dir"]
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(0.0))
    assert run_dir == os.path.abspath(f"runs/{name}-{stamp}")


def test_untested_versions_are_said(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "tfmulti.version.untested", lambda: ("keras 9 is installed.",)
    )
    assert "keras 9 is installed." in planned(capsys, tmp_path)["notes"]


@pytest.mark.parametrize("words", [["tfmulti"], ["tfmulti", "--help"]])
def test_the_console_script_lists_its_commands(tmp_path, words):
    outcome = Outcome(words, tmp_path, {})
    assert outcome.code == 0
    for name in cli.COMMANDS:
        assert f"  {name}" in outcome.out


def test_the_console_script_runs_a_command(tmp_path):
    ours = Outcome(["tfmulti", "run", "--help"], tmp_path, {})
    same = Outcome(["tfmulti.run", "--help"], tmp_path, {})
    assert (ours.code, ours.out) == (same.code, same.out) == (0, same.out)


def test_an_unknown_command(tmp_path):
    refused(Outcome(["tfmulti", "rum"], tmp_path, {}), "'rum'", "run")


def test_a_reader_that_leaves_ends_the_job(tmp_path):
    """As with `... | head -1`: no traceback, no worker left."""
    script = tmp_path / "talk.py"
    script.write_text("")
    # Stands in for the worker, and is what `python -m` finds first.
    stand_in = tmp_path / "sitecustomize.py"
    stand_in.write_text(
        "import os, sys, time\n"
        "if 'TFMULTI_JOB' in os.environ:\n"
        "    while True:\n"
        "        print(os.getpid())\n"
        "        time.sleep(0.01)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "tfmulti.run", "--strategy", "multiworker",
         "--workers", "2", str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path),
             "CUDA_VISIBLE_DEVICES": "-1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    worker = int(process.stdout.readline().split()[-1])
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(20) == 141
    assert "Traceback" not in err and "Error" not in err
    assert not Path(f"/proc/{worker}").exists()


def test_version(tmp_path):
    for words in (["tfmulti"], ["tfmulti.run"]):
        outcome = Outcome([*words, "--version"], tmp_path, {})
        assert outcome.out.startswith("tfmulti 0.")
