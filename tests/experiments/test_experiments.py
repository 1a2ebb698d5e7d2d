"""Every experiment that an entry point names, shrunk and run on two replicas.

Two epochs of two steps on made-up data, with a model of the same build but a
few units: long enough for every line of the run, and everything that a run
leaves is read back.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from tfmulti import keras3
from tfmulti.config import Experiment, experiment_names, load_experiment
from tfmulti.launch.job import Job
from tfmulti.measure import RunSummary, read_epochs
from tfmulti.train.checksum import weights_sha256
from tfmulti.train.experiment import Place, run_experiment

# What makes each model tiny; a new experiment needs a line here.
TINY = {
    "digits_cnn": {"filters": (4, 4), "dense": 8},
    "digits_vit": {"depth": 1, "width": 8, "heads": 2},
    "digits_gan": {"width": 4, "latent_size": 4},
    "python_lm": {"layers": 1, "width": 8, "heads": 2, "context_length": 16},
    "resnet50_imagenet": {
        "depth": 18,
        "image_shape": (32, 32, 3),
        "num_classes": 10,
    },
    "gpt2_text": {"layers": 1, "width": 8, "heads": 2, "context_length": 16},
    "dcgan_images": {"width": 4, "image_shape": (16, 16, 3)},
}
SAMPLES = {"gan": "samples.png", "language_model": "sample.txt"}


def shrunk(name: str, **changes) -> Experiment:
    """The experiment with a tiny model, for four steps on made-up data."""
    experiment = load_experiment(name)
    model_config = dict(experiment.model_config) | TINY[name]
    warmup = None if experiment.warmup_steps is None else 1
    values = {
        "model_config": model_config,
        "data": "synthetic",
        "epochs": 2,
        "steps_per_epoch": 2,
        "global_batch_size": 4,
        "warmup_steps": warmup,
        "validation_examples": 6,
    }
    return experiment.replace(**(values | changes))


@pytest.fixture(scope="module")
def strategy(devices):
    made = tf.distribute.MirroredStrategy(devices[:2])
    keras3.apply(made)
    yield made
    keras3.undo()
    keras.config.set_dtype_policy("float32")


def run(experiment: Experiment, strategy, folder: Path) -> Path:
    job = Job(
        strategy="mirrored",
        replicas_per_worker=2,
        device="CPU",
        experiment=experiment,
        run_dir=str(folder / "run"),
    )
    run_experiment(
        Place(
            job=job, strategy=strategy, chief=True, start_s=time.monotonic()
        )
    )
    return folder / "run"


def test_every_experiment_is_shrunk_here():
    assert set(experiment_names()) == set(TINY)


@pytest.mark.parametrize("name", TINY)
def test_names_and_docstrings_say_how_to_run_it(name: str):
    import importlib

    module = importlib.import_module(f"tfmulti_experiments.{name}")
    assert module.EXPERIMENT.name == name
    assert "python -m tfmulti.run" in module.__doc__


@pytest.mark.parametrize("name", TINY)
def test_runs_and_leaves_what_it_says(
    name: str, strategy, tmp_path: Path, capsys
):
    experiment = shrunk(name)
    folder = run(experiment, strategy, tmp_path)

    config = json.loads((folder / "config.json").read_text())
    saved = Experiment.from_json(config["job"]["experiment"])
    assert saved.to_json() == json.loads(json.dumps(experiment.to_json()))

    epochs = read_epochs(folder / "metrics.jsonl")
    assert [(e.epoch, e.step) for e in epochs] == [(1, 2), (2, 4)]
    for epoch in epochs:
        assert all(math.isfinite(v) for v in epoch.metrics.values())

    summary = RunSummary.from_json(
        json.loads((folder / "summary.json").read_text())
    )
    assert (summary.replicas, summary.steps) == (2, 4)
    for file in summary.files.values():
        assert (folder / file).stat().st_size > 0
    if experiment.task in SAMPLES:
        assert SAMPLES[experiment.task] in summary.files.values()

    model = keras.saving.load_model(folder / "model.keras")
    assert weights_sha256(model) == summary.weights_sha256
    assert model.count_params() == summary.parameters
    shown = capsys.readouterr().out
    assert f"weights sha256 {summary.weights_sha256}" in shown
    assert f"experiment  {name}" in shown


def test_the_seed_decides_the_weights(strategy, tmp_path: Path):
    def digits(seed: int, folder: str) -> str:
        place = run(
            shrunk("digits_cnn", seed=seed), strategy, tmp_path / folder
        )
        return json.loads((place / "summary.json").read_text())[
            "weights_sha256"
        ]

    first = digits(1, "a")
    assert digits(1, "b") == first
    assert digits(2, "c") != first


def test_mixed_precision_trains_and_keeps_the_output_float32(
    strategy, tmp_path: Path
):
    try:
        folder = run(
            shrunk("digits_cnn", precision="mixed_bfloat16"),
            strategy,
            tmp_path,
        )
        model = keras.saving.load_model(folder / "model.keras")
        assert model.layers[1].compute_dtype == "bfloat16"
        assert model.output.dtype == "float32"
    finally:
        keras.config.set_dtype_policy("float32")
