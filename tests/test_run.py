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

import tfmulti
from tfmulti import cli, config, run
from tfmulti.errors import UsageError

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
        ("--learning_rate -1", ["--learning_rate=-1"]),
        ("--learning_rate inf", ["--learning_rate=inf"]),
        ("--learning_rate nan", ["--learning_rate=nan"]),
        ("--seed -1", ["--seed=-1", "0"]),
        ("--seed 4294967296", ["--seed=4294967296", "4294967295"]),
        ("--seed 1.5", ["--seed=1.5", "a whole number"]),
        ("--epochs 99999999999", ["--epochs=99999999999"]),
        ("--steps_per_epoch 99999999999", ["--steps_per_epoch"]),
        ("--global_batch_size 99999999999", ["--global_batch_size"]),
        ("--workers 1025", ["--workers=1025", "1 to 1024"]),
        ("--replicas 1025", ["--replicas=1025", "1 to 1024"]),
        ("--replicas abc", ["--replicas=abc", "a whole number from 1."]),
        ("--packs -1", ["--packs=-1"]),
        ("--pack_mb nan", ["--pack_mb=nan"]),
        ("--pack_mb 0", ["--pack_mb=0"]),
        ("--collective_timeout_s inf", ["--collective_timeout_s=inf"]),
        ("--experiment=", ["--experiment", "empty"]),
        ("--experiment dcgan_images", ["without --data", "images:DIR"]),
        ("--experiment gpt2_text", ["without --data", "text:PATTERN"]),
        ("--run_dir=", ["--run_dir", "empty"]),
        ("--data=", ["--data ", "empty"]),
        ("--nccl=", ["--nccl ", "empty"]),
        ("--nccl =ring", ["--nccl =ring", "KEY=VALUE"]),
        ("--nodry_run=3", ["--nodry_run=3"]),
        ("--packs 99999999999999999999", ["--packs=9999", "1000000000"]),
        ("--pack_mb 1e308", ["--pack_mb=1e+308", "1000000000"]),
        ("--flagfile nowhere", ["flagfile", "nowhere"]),
        (f"--run_dir {'x' * 300}", ["--run_dir=", "File name too long"]),
        ("--flagfile binary", ["--flagfile", "text"]),
        ("/dev/null", ["/dev/null", "a device"]),
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
        ("--run_dir here.py/r", ["here.py/r", "a file is in the way"]),
        ("--run_dir here.py --strategy multiworker --workers 2 here.py",
         ["here.py", "a file is in the way"]),
        ("--epochs 2 here.py", ["--epochs=2", "script"]),
        ("--data digits here.py --data x", ["--data=digits"]),
    ],
)
def test_wrong_flags(command, tmp_path, line, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "here.py").write_text("")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    refused(command(*line.split()), *words)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{not json", ["not JSON"]),
        ("[" * 100_000, ["nested"]),
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


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_another_backend_of_keras(command, backend):
    refused(command(KERAS_BACKEND=backend), f"KERAS_BACKEND={backend}")


def test_a_value_of_two_lines_is_told_in_one(command):
    refused(command("--experiment", "a\nb"), r"a\nb")


def test_another_backend_of_keras_in_code(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    with pytest.raises(UsageError, match="KERAS_BACKEND=jax"):
        _ = tfmulti.init


def test_a_working_directory_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["bash", "-c", f"rmdir {gone} && {sys.executable} -m tfmulti.run"],
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()[-1:]
    assert "working directory" in line and "Traceback" not in done.stderr


def shell(line: str, folder: Path) -> tuple[int, str, str]:
    """Runs a line of bash in which $RUN is the command."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env=os.environ | {"RUN": f"{sys.executable} -m tfmulti.run"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("$RUN --help >&-", 0, ""),
        ("$RUN --help 2>&- | tail -n 1", 0, ""),
        ("$RUN --help > /dev/full", 1, "No space left on device"),
        ("$RUN --epochs 0 2> /dev/full", 2, ""),
        ("$RUN --epochs 0 2>&-", 2, ""),
        ("$RUN --dry_run --data synthetic | true", 141, ""),
    ],
)
def test_output_that_goes_nowhere(tmp_path, line, code, words):
    got, _, err = shell(line, tmp_path)
    assert got == code, err
    assert words in err and len(err.splitlines()) == bool(words)


def test_a_closed_output_becomes_no_workers_file(tmp_path):
    """Descriptor 1 must not be the lock, a log or a socket."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        "if 'TFMULTI_JOB' in os.environ:\n"
        "    where = os.readlink('/proc/self/fd/1')\n"
        "    open('where', 'w').write(where)\n"
        "    os._exit(0)\n"
    )
    code, _, err = shell(
        f"PYTHONPATH={tmp_path} $RUN --strategy one --run_dir r >&-", tmp_path
    )
    assert code == 0, err
    assert (tmp_path / "where").read_text() == "/dev/null"


@pytest.mark.parametrize(
    ("signum", "word"), [(2, "interrupted"), (15, "told to end")]
)
@pytest.mark.parametrize("after_s", [0.12, 0.2, 0.3, 0.6, 1.2])
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_a_signal_at_any_time_is_one_line(
    tmp_path, signum, word, after_s, workers
):
    """While the command loads, while workers load, while TensorFlow does."""
    process = subprocess.Popen(
        [sys.executable, "-c", EARLY, *workers],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(after_s)
    process.send_signal(signum)
    out, err = process.communicate(timeout=30)
    said = [line for line in err.splitlines() if "No GPU" not in line]
    assert (process.returncode, said) == (128 + signum, [f"tfmulti: {word}"])
    assert "Traceback" not in out
    assert not list_of_group(process.pid)


# Python's own start, which nothing of ours can make quiet, is over here.
EARLY = """
import runpy, sys
print("started", flush=True)
sys.argv = ["tfmulti.run", "--run_dir", "r", *sys.argv[1:]]
runpy.run_module("tfmulti.run", run_name="__main__", alter_sys=True)
"""


def list_of_group(session: int) -> list[str]:
    """Lists the processes of a session that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if text.rpartition(")")[2].split()[3] == str(session):
            found.append(text)
    return found


STAND_IN = (
    "import os, time\n"
    "if 'TFMULTI_JOB' in os.environ:\n"
    "    print('worker', flush=True)\n"
    "    time.sleep(300)\n"
)


def test_two_runs_of_one_folder_the_second_is_refused(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(STAND_IN)
    words = [sys.executable, "-m", "tfmulti.run", "--strategy", "one"]
    first = subprocess.Popen(
        [*words, "--run_dir", "r"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "worker\n"
        outcome = Outcome(["tfmulti.run", "--run_dir", "r"], tmp_path, {})
        refused(outcome, "/r,", "still lives")
    finally:
        first.kill()
        first.wait()
        assert first.stdout is not None
        first.stdout.close()


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
        "collective_timeout_s nccl nccl_preset hosts worker_index "
        "rendezvous_timeout_s version "
        "help flagfile"
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


def test_a_script_needs_no_command(tmp_path):
    (tmp_path / "t.py").write_text("")
    refused(Outcome(["tfmulti", "no/such.py"], tmp_path, {}), "no/such.py")
    refused(Outcome(["tfmulti", "nowhere.py"], tmp_path, {}), "nowhere.py")
    with_run = Outcome(["tfmulti", "run", "--dry_run", "t.py"], tmp_path, {})
    without = Outcome(["tfmulti", "--dry_run", "t.py"], tmp_path, {})
    job = json.loads(with_run.out)["job"]
    assert json.loads(without.out)["job"]["script"] == job["script"]


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
