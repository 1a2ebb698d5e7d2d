"""The command `plan`: its words, its arithmetic, its refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tfmulti import plan


def said(capsys: pytest.CaptureFixture[str], *flags: str) -> list[Any]:
    assert plan.main([*flags, "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert isinstance(answers, list)
    return answers


def test_cost_is_gpu_hours_times_price(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (one,) = said(capsys, "--gpus=4", "--price_per_gpu_hour=2.5")
    hours = 1_281_167 / one["units_per_s"] / 3600
    assert one["hours"] == pytest.approx(hours)
    assert one["cost"] == pytest.approx(hours * 4 * 2.5)
    assert one["units_per_s_low"] < one["units_per_s"]
    assert one["units_per_s"] < one["units_per_s_high"]


def test_state_is_float32_and_zero1_divides_the_slots(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (whole,) = said(capsys, "--gpus=8")
    (shared,) = said(capsys, "--gpus=8", "--zero1")
    assert whole["state_bytes"] == {
        "weights": 25557032 * 4,
        "gradients": 25557032 * 4,
        "optimizer": 25557032 * 8,
    }
    assert shared["state_bytes"]["optimizer"] == 25557032


def test_those_that_meet_the_deadline_come_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ("--gpu=T4,H100 SXM5", "--gpus=1")
    slow, fast = said(capsys, *flags, "--price_per_gpu_hour=0")[::-1]
    assert (slow["gpu"], fast["gpu"]) == ("T4", "H100 SXM5")
    limit = (slow["hours_high"] + fast["hours_high"]) / 2
    first, second = said(capsys, *flags, f"--deadline_hours={limit}")
    assert first["meets_deadline"] and not second["meets_deadline"]


def test_a_state_larger_than_the_memory_does_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan.main(["--model=gpt2xl", "--gpu=RTX 3070"]) == 0
    assert "DOES NOT FIT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--gpu=A1"], "'A1'"),
        (["--model=resnet51"], "'resnet51'"),
        (["--model=bert-large", "--input=seq 7"], "seq 384"),
        (["--gpus=4", "--hosts=2"], "--network"),
        (["--gpus=1", "--hosts=2", "--network=25 GbE"], "1 GPUs on 2 hosts"),
    ],
)
def test_refusals(
    flags: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan.main(flags) == 2
    assert named in capsys.readouterr().err
