"""Real worker processes: equal weights, one writer, and what is unequal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.train.launching import program, tfmulti_run

pytestmark = pytest.mark.workers

TINY = (
    "--epochs=2",
    "--steps_per_epoch=16",  # longer than its warm-up
    "--global_batch_size=16",
    "--run_dir=run",
)


def checksums(out: str) -> list[str]:
    return re.findall(r"weights sha256 ([0-9a-f]{16})", out)


@pytest.mark.slow
def test_experiment_ends_with_the_weights_that_one_process_gives(
    tmp_path: Path,
):
    """2 x 1 and 2 x 2 on workers, 2 mirrored: one loss to five digits."""
    losses = {}
    for name, args in {
        "workers": ("--strategy=multiworker", "--workers=2"),
        "both": ("--strategy=multiworker", "--workers=2", "--replicas=2"),
        "mirrored": ("--strategy=mirrored", "--replicas=2"),
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        done = tfmulti_run(
            *args,
            "--experiment=python_lm",
            *TINY,
            folder=folder,
        )
        assert done.code == 0, done.err + done.out
        several = name != "mirrored"
        assert len(set(checksums(done.out))) == 1
        assert len(checksums(done.out)) == (2 if several else 1)
        run = folder / "run"
        summary = json.loads((run / "summary.json").read_text())
        assert summary["workers"] == (2 if several else 1)
        losses[name] = summary["metrics"]["loss"]
        lines = (run / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["epoch"] for line in lines] == [1, 2]
        # The other workers show their checksum, no progress and no summary.
        assert done.out.count("run folder") == 1
        assert done.out.count("epoch 1/2") == 1
    assert losses["workers"] == pytest.approx(losses["mirrored"], rel=1e-5)
    assert losses["both"] == pytest.approx(losses["mirrored"], rel=1e-5)


def test_plain_keras_script_gives_one_answer_on_two_workers(tmp_path: Path):
    one = tfmulti_run("--strategy=one", program("plain_fit"), folder=tmp_path)
    two = tfmulti_run(
        "--strategy=multiworker",
        "--workers=2",
        program("plain_fit"),
        folder=tmp_path,
    )
    assert (one.code, two.code) == (0, 0), two.err + two.out
    assert two.out.count(one.line("losses")) == 2
    assert two.out.count("replicas 2") == 2


def test_a_weight_that_differs_on_one_worker_is_named(tmp_path: Path):
    done = tfmulti_run(
        "--strategy=multiworker",
        "--workers=2",
        "--replicas=2",
        program("unequal_weights"),
        folder=tmp_path,
    )
    assert done.code == 1
    assert len(set(checksums(done.out))) == 1
    everything = done.out + done.err
    assert "only/bias of replica 2, 3 differs from replica 0's" in everything
