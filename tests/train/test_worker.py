"""A worker process: scripts under a strategy, exit codes, and quiet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.train.launching import program, python, tfmulti_run

MIRRORED = ("--strategy", "mirrored", "--replicas", "2")
EMULATION = "tfmulti: No GPU: 2 replicas on logical CPU devices"
TINY = (
    "--epochs=1",
    "--steps_per_epoch=31",
    "--global_batch_size=8",
    "--run_dir=run",
)


@pytest.mark.parametrize("name", ["plain_fit", "train_step_only"])
def test_a_script_gives_two_replicas_what_python_gives_one(
    name: str, tmp_path: Path
):
    alone = python(program(name), folder=tmp_path)
    ours = tfmulti_run(*MIRRORED, program(name), folder=tmp_path)
    assert (alone.code, ours.code) == (0, 0), ours.err
    assert ours.line("losses") == alone.line("losses")
    if name == "plain_fit":
        assert alone.line("replicas") == "replicas 1"
        assert ours.line("replicas") == "replicas 2"


@pytest.mark.parametrize("name", ["own_strategy", "custom_loop"])
def test_a_script_with_a_strategy_of_its_own_gets_the_jobs(
    name: str, tmp_path: Path
):
    # Without a GPU its own MirroredStrategy has one replica.
    alone = python(program(name), folder=tmp_path)
    ours = tfmulti_run(*MIRRORED, program(name), folder=tmp_path)
    assert (alone.code, ours.code) == (0, 0), ours.err
    strip = ("loss ", "losses ")
    assert [x for x in ours.out.splitlines() if x.startswith(strip)] == [
        x for x in alone.out.splitlines() if x.startswith(strip)
    ]
    if name == "own_strategy":
        assert ours.line("replicas") == "replicas 2"


def test_a_loop_without_strategy_run_is_told_the_remedy(tmp_path: Path):
    done = tfmulti_run(*MIRRORED, program("loop_without_run"), folder=tmp_path)
    assert done.code == 1
    assert "strategy.run(step, args=(batch,))" in done.err
    assert "Traceback" not in done.err
    assert "done" not in done.out


@pytest.mark.parametrize("argument", ["0", "7", "raise"])
def test_flags_exit_code_atexit_and_traceback_are_the_scripts(
    argument: str, tmp_path: Path
):
    script = program("exits")
    args = (script, argument, "--epochs=3")
    done = tfmulti_run(*MIRRORED, *args, folder=tmp_path)
    assert done.out.splitlines() == [
        f"{[script, argument, '--epochs=3']} __main__ 2",
        "at exit",
    ]
    note, *rest = done.err.splitlines()
    assert note.startswith(EMULATION)
    if argument == "raise":
        assert done.code == 1
        assert rest == [
            "Traceback (most recent call last):",
            f'  File "{script}", line 11, in <module>',
            '    raise ValueError("the script\'s own mistake")',
            "ValueError: the script's own mistake",
        ]
    else:
        assert (done.code, rest) == (int(argument), [])


def test_a_module_is_run_under_the_strategy(tmp_path: Path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "part.py").write_text(
        "import sys, tensorflow as tf\n"
        "print(sys.argv[1:], __package__,\n"
        "      tf.distribute.get_strategy().num_replicas_in_sync)\n"
        "sys.exit(4)\n"
    )
    done = tfmulti_run(*MIRRORED, "-m", "package.part", "-x", folder=tmp_path)
    assert (done.code, done.out) == (4, "['-x'] package 2\n")


def test_an_experiment_shows_its_run_and_nothing_else(tmp_path: Path):
    done = tfmulti_run(*MIRRORED, *TINY, folder=tmp_path)
    assert done.code == 0, done.err
    (note,) = done.err.splitlines()
    assert note.startswith(EMULATION)
    data, first, digits, blank, *table = done.out.splitlines()
    assert data.startswith("data: UCI Optical Recognition")
    assert first.startswith("epoch 1/1 · step 31 · ")
    assert digits.startswith("weights sha256 ")
    assert not blank and table[0].split() == ["experiment", "digits_cnn"]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert digits.endswith(summary["weights_sha256"])


def test_a_run_folder_in_use_is_one_line_and_code_2(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.jsonl").write_text("{}\n")
    done = tfmulti_run(*MIRRORED, *TINY, folder=tmp_path)
    assert done.code == 2
    assert "holds the metrics of a run" in done.err.splitlines()[-1]
    assert "Traceback" not in done.err
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == "{}\n"
