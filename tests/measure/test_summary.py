"""The closing summary and the epoch line, word for word."""

from __future__ import annotations

import dataclasses

import pytest

from tests.measure.test_records import record
from tfmulti.measure import RunSummary, epoch_line, summary_text
from tfmulti.measure.summary import metric_text

SUMMARY = RunSummary(
    experiment="digits_cnn",
    strategy="multiworker",
    workers=2,
    replicas=4,
    device="CPU",
    precision="float32",
    parameters=12345,
    epochs=3,
    steps=69,
    examples_per_s=5432.1,
    step_ms=11.83,
    metrics={"loss": 0.07123, "accuracy": 0.98125},
    wall_s=42.4,
    weights_sha256="0123456789abcdef",
    run_dir="runs/digits_cnn-1",
    files={"model": "model.keras", "curves": "curves.png"},
)

GOLDEN = """\
experiment  digits_cnn
replicas    4 x CPU, multiworker (2 workers x 2)
parameters  12,345 (float32)
trained     3 epochs, 69 steps
speed       5.43 k examples/s, median step 11.8 ms (without the first step, \
which compiles)
result      loss 0.07123, accuracy 98.1 %
wall time   42.4 s
run folder  runs/digits_cnn-1
  model     model.keras
  curves    curves.png"""


def test_summary_text_is_the_golden_one():
    assert summary_text(SUMMARY) == GOLDEN


def test_one_of_a_thing_has_no_plural():
    text = summary_text(dataclasses.replace(SUMMARY, epochs=1, steps=1))
    assert "1 epoch, 1 step\n" in text


def test_summary_goes_to_json_and_back():
    assert RunSummary.from_json(SUMMARY.to_json()) == SUMMARY


def test_epoch_line():
    line = epoch_line(record(2), epochs=12)
    assert line == (
        "epoch  2/12 · step 20 · loss 1.5, val loss 2 · 160 examples/s"
    )


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("accuracy", 0.5, "accuracy 50.0 %"),
        ("bits_per_byte", 2.71828, "bits per byte 2.718"),
        ("count_classes_seen", 10.0, "classes seen 10"),
        ("loss", float("nan"), "loss nan"),
        ("loss", float("inf"), "loss inf"),
    ],
)
def test_metric_text(name, value, text):
    assert metric_text(name, value) == text
