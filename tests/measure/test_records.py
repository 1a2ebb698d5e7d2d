"""Records go to JSON and back, and rates leave out what they should."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tfmulti.errors import UsageError
from tfmulti.measure import (
    EpochRecord,
    append_epoch,
    median,
    read_epochs,
    steady_rate,
    steady_step_ms,
)


def record(epoch: int = 1, **changes) -> EpochRecord:
    values = {
        "epoch": epoch,
        "step": 10 * epoch,
        "metrics": {"loss": 1.5, "val_loss": 2.0},
        "timed_steps": 10,
        "timed_examples": 320,
        "timed_s": 2.0,
        "step_ms": 150.0,
        "time_s": 3.0 * epoch,
    }
    return EpochRecord(**(values | changes))


def test_journal_gives_back_what_was_written(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    written = [record(1), record(2, metrics={"loss": 1e-9})]
    for each in written:
        append_epoch(path, each)
    assert list(read_epochs(path)) == written


def test_journal_lines_are_strict_json_even_for_nan(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    append_epoch(path, record(metrics={"loss": math.nan, "x": math.inf}))
    document = json.loads(
        path.read_text(), parse_constant=lambda name: pytest.fail(name)
    )
    assert document["metrics"] == {"loss": "nan", "x": "inf"}
    (back,) = read_epochs(path)
    assert math.isnan(back.metrics["loss"])
    assert back.metrics["x"] == math.inf


def test_a_line_cut_short_by_a_crash_is_left_out(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    append_epoch(path, record(1))
    with open(path, "a") as file:
        file.write('{"epoch": 2, "st')
    assert [e.epoch for e in read_epochs(path)] == [1]


def test_a_wrong_line_inside_is_an_error_that_names_it(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("nonsense\n")
    append_epoch(path, record(1))
    with pytest.raises(UsageError, match="line 1: 'nonsense'"):
        read_epochs(path)


@pytest.mark.parametrize(
    "values, middle",
    [([], None), ([3], 3), ([5, 1, 3], 3), ([4, 1, 2, 100], 3)],
)
def test_median(values, middle):
    assert median(values) == middle


def test_examples_per_s_counts_timed_steps_only():
    assert record(timed_examples=288, timed_s=3.0).examples_per_s == 96.0
    assert record(timed_steps=0, timed_s=0.0).examples_per_s is None


def test_steady_rate_leaves_out_the_first_epoch_unless_it_is_alone():
    first = record(1, timed_s=20.0, step_ms=900.0)
    others = [record(2), record(3, timed_s=3.0, step_ms=170.0)]
    assert steady_rate([first]) == 16.0
    assert steady_rate([first, *others]) == 640 / 5.0
    assert steady_step_ms([first, *others]) == 160.0
    assert steady_rate([]) is None and steady_step_ms([]) is None
