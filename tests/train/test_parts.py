"""Optimizer, factories, run folder, recorder: each by itself."""

from __future__ import annotations

import json
from pathlib import Path

import keras  # Its import sets variables: not inside a test.
import numpy as np
import pytest

from tfmulti.config import Experiment
from tfmulti.errors import UsageError
from tfmulti.measure import read_epochs


def experiment(**changes) -> Experiment:
    values = {
        "name": "tiny",
        "summary": "for tests",
        "task": "classification",
        "model": "convnet",
        "data": "synthetic",
        "epochs": 2,
        "global_batch_size": 8,
        "learning_rate": 0.1,
    }
    return Experiment(**(values | changes))


def test_constant_rate_clipping_and_rule():
    from tfmulti.train.optimizers import make_optimizer

    made = make_optimizer(experiment(global_clipnorm=2.0), 10)
    assert type(made).__name__ == "Adam"
    assert float(made.learning_rate) == pytest.approx(0.1)
    assert made.global_clipnorm == 2.0
    made = make_optimizer(experiment(optimizer="sgd"), 10)
    assert (type(made).__name__, made.momentum) == ("SGD", 0.9)
    made = make_optimizer(
        experiment(optimizer="adamw", weight_decay=0.3), 10, beta_1=0.5
    )
    assert (made.weight_decay, made.beta_1) == (0.3, 0.5)


@pytest.mark.parametrize("warmup", [0, 4])
def test_the_schedule_peaks_after_warm_up_and_ends_at_zero(warmup: int):
    from tfmulti.train.optimizers import make_optimizer

    made = make_optimizer(experiment(warmup_steps=warmup), 20)
    schedule = made._learning_rate
    rates = [float(schedule(step)) for step in range(21)]
    assert int(np.argmax(rates)) == warmup
    assert max(rates) == pytest.approx(0.1)
    assert rates[-1] == pytest.approx(0.0, abs=1e-8)
    if warmup:
        assert rates[:5] == pytest.approx([0, 0.025, 0.05, 0.075, 0.1])
    assert rates[warmup:] == sorted(rates[warmup:], reverse=True)


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"weight_decay": 0.1}, "optimizer=adam"),
    ],
)
def test_an_optimizer_that_cannot_be_is_refused(changes, named):
    from tfmulti.train.optimizers import make_optimizer

    with pytest.raises(UsageError, match=named):
        make_optimizer(experiment(**changes), 10)


def test_a_warm_up_longer_than_the_run_is_shortened_with_a_line(caplog):
    from tfmulti.train.optimizers import make_optimizer

    made = make_optimizer(experiment(warmup_steps=10), 10)
    rates = [float(made._learning_rate(step)) for step in range(11)]
    assert int(np.argmax(rates)) == 5
    assert "takes 5 steps instead of 10" in caplog.text


def test_facts_of_the_data_fill_what_the_experiment_leaves_open():
    from tfmulti.train.factories import load_factory, make_config

    factory = load_factory("convnet")
    facts = {"image_shape": (16, 16, 3), "num_classes": 7, "other": 1}
    config = make_config(
        factory, experiment(model_config={"dense": 5}), facts
    )
    assert config.image_shape == (16, 16, 3)
    assert (config.num_classes, config.dense) == (7, 5)
    config = make_config(factory, experiment(), {"num_classes": None})
    assert config == factory.Config()


@pytest.mark.parametrize(
    "model_config, named",
    [
        ({"filtres": 3}, "'filtres'"),
        ({"depth": 0}, "depth"),
        ({"num_classes": 9}, "num_classes=9.*num_classes=10"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(model_config, named):
    from tfmulti.train.factories import load_factory, make_config

    with pytest.raises(UsageError, match=named):
        make_config(
            load_factory("convnet"),
            experiment(model_config=model_config),
            {"num_classes": 10},
        )


def test_an_unknown_model_is_refused():
    from tfmulti.train.factories import load_factory

    with pytest.raises(UsageError, match="allowed: .*convnet"):
        load_factory("convnett")


def test_a_run_folder_is_made_once(tmp_path: Path):
    from tfmulti.train import run_dir

    folder = run_dir.open_run_dir(str(tmp_path / "a/b"), {"seed": 3})
    config = json.loads((folder / run_dir.CONFIG).read_text())
    assert config["seed"] == 3 and config["versions"]["keras"]
    run_dir.open_run_dir(str(folder), {})
    (folder / "metrics.jsonl").write_text("")
    with pytest.raises(UsageError, match="holds the metrics of a run"):
        run_dir.open_run_dir(str(folder), {})


def test_the_recorder_records_what_fit_did(tmp_path: Path):
    from tfmulti.train.recorder import EpochRecorder

    x = np.random.default_rng(0).random((30, 4), np.float32)
    y = x.sum(axis=1, keepdims=True)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    shown: list[str] = []
    recorder = EpochRecorder(
        steps=4,
        examples=30,
        epochs=3,
        terms=lambda logs: logs | {"twice": 2 * logs["loss"]},
        path=tmp_path / "metrics.jsonl",
        show=shown.append,
    )
    history = model.fit(
        x,
        y,
        batch_size=8,
        epochs=3,
        validation_data=(x, y),
        callbacks=[recorder],
        verbose=0,
    ).history
    epochs = read_epochs(tmp_path / "metrics.jsonl")
    assert list(epochs) == recorder.records
    assert [e.step for e in epochs] == [4, 8, 12]
    assert [e.timed_steps for e in epochs] == [3, 4, 4]
    assert [e.timed_examples for e in epochs] == [22, 30, 30]
    assert [e.metrics["loss"] for e in epochs] == history["loss"]
    assert [e.metrics["val_loss"] for e in epochs] == history["val_loss"]
    assert epochs[1].metrics["twice"] == 2 * history["loss"][1]
    # The clock ran for the steps alone, so for less than the run did.
    assert 0 < sum(e.timed_s for e in epochs) < epochs[-1].time_s
    assert len(shown) == 3 and shown[2].startswith("epoch 3/3 · step 12")


def test_the_judge_knows_digits_and_is_not_sure_of_noise():
    from sklearn.datasets import load_digits

    from tfmulti.train.judge import Judge

    digits = load_digits()
    images = (digits.images[..., None] / 16).astype(np.float32)
    judge = Judge(images, digits.target, classes=10)
    assert judge.accuracy > 0.96
    verdict = judge(images)
    assert verdict.share_sure > 0.9 and verdict.classes_seen == 10
    ones = judge(images[digits.target == 1])
    assert ones.share_sure > 0.9 and ones.classes_seen == 1
    noise = np.random.default_rng(0).random(images.shape, np.float32)
    assert judge(noise).share_sure < verdict.share_sure - 0.2


def test_text_is_continued_from_the_models_distribution():
    from tfmulti.train.language_model import continue_text

    # A model that always says: the next token is this one plus one.
    tokens = keras.Input((4,), dtype="int32")
    table = 50 * np.roll(np.eye(256, dtype=np.float32), 1, axis=1)
    embed = keras.layers.Embedding(256, 256)
    model = keras.Model(tokens, embed(tokens))
    embed.set_weights([table])
    written = continue_text(
        model, np.array([60, 61]), context=4, tokens=9
    )
    assert written.tolist() == list(range(62, 71))
