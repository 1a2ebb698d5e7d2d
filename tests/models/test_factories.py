"""What holds for every factory: counts, shapes, dtypes, saving, learning."""

from __future__ import annotations

import dataclasses
import json
from importlib import metadata

import keras
import numpy as np
import pytest

from tests.models import cases
from tests.models.graph_flops import forward_flops

CLASSIFIERS = ("convnet", "resnet", "vit", "transformer_lm")


@pytest.fixture(autouse=True)
def _float32_policy(devices):
    """Leaves the global dtype policy as it was."""
    before = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(before)


def _batch(case: cases.Case, rows: int) -> np.ndarray:
    shape, dtype = case.input_spec(rows)
    draw = np.random.default_rng(0)
    if dtype == "int32":
        return draw.integers(0, case.config.vocabulary_size, shape, "int32")
    return draw.random(shape, "float32")


def test_entry_points_name_every_factory():
    points = metadata.entry_points(group="tfmulti.models")
    assert set(cases.FACTORIES) <= {point.name for point in points}
    for name in cases.FACTORIES:
        module = points[name].load()
        assert module is cases.first(name).module


@pytest.mark.parametrize("case", cases.small_cases(), ids=cases.identifier)
def test_parameter_count_is_the_built_models(case):
    model = case.module.build(case.config)
    assert case.module.parameter_count(case.config) == model.count_params()


@pytest.mark.parametrize(
    "case", cases.small_cases(CLASSIFIERS), ids=cases.identifier
)
def test_flops_are_the_graphs(case):
    model = case.module.build(case.config)
    counted = forward_flops(model, case.input_spec(1))
    assert case.module.flops_per_example(case.config) == counted


@pytest.mark.parametrize(
    "case", cases.small_cases(CLASSIFIERS), ids=cases.identifier
)
def test_same_seed_same_weights(case):
    def weights(seed):
        keras.utils.set_random_seed(seed)
        return case.module.build(case.config).get_weights()

    first = weights(1)
    assert all(map(np.array_equal, first, weights(1)))
    assert not all(map(np.array_equal, first, weights(2)))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_mixed_precision_keeps_outputs_float32(name, policy):
    keras.config.set_dtype_policy(policy)
    case = cases.first(name)
    model = case.module.build(case.config)
    logits = model(_batch(case, 2))
    assert model.output.dtype == logits.dtype.name == "float32"
    assert all(weight.dtype == "float32" for weight in model.weights)
    inner = [layer.compute_dtype for layer in model.layers]
    assert policy.removeprefix("mixed_") in inner


@pytest.mark.parametrize(
    ("case", "policy"),
    [(case, "float32") for case in cases.small_cases(CLASSIFIERS)]
    + [(cases.first(name), "mixed_bfloat16") for name in CLASSIFIERS],
    ids=cases.identifier,
)
def test_save_and_load_gives_the_same_outputs(case, policy, tmp_path):
    keras.config.set_dtype_policy(policy)
    model = case.module.build(case.config)
    batch = _batch(case, 3)
    model.save(tmp_path / "model.keras")
    keras.config.set_dtype_policy("float32")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    expected = model.predict(batch, verbose=0)
    np.testing.assert_array_equal(loaded.predict(batch, verbose=0), expected)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_steps_lower_the_loss(name):
    keras.utils.set_random_seed(3)
    case = cases.first(name)
    model = case.module.build(case.config)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss, jit_compile=False)
    batch = _batch(case, 16)
    labels = batch
    if name != "transformer_lm":
        labels = np.random.default_rng(1).integers(
            0, case.config.num_classes, 16
        )
    losses = [float(model.train_on_batch(batch, labels)) for _ in range(12)]
    # Logits start near equal odds, and the model learns the batch by heart.
    classes = model.output_shape[-1]
    assert losses[0] == pytest.approx(np.log(classes), rel=0.5)
    assert np.mean(losses[-3:]) < losses[0]


@pytest.mark.parametrize("case", cases.small_cases(), ids=cases.identifier)
def test_configs_go_through_json(case):
    # As an experiment's record does: tuples come back as lists.
    document = json.loads(json.dumps(dataclasses.asdict(case.config)))
    assert case.module.Config(**document) == case.config


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("convnet", {"filters": (8,) * 9}, ["filters=(8,", "1 to 4 stages"]),
        ("convnet", {"dropout": 1.0}, ["dropout=1.0", "below 1"]),
        ("convnet", {"image_shape": (8, 8)}, ["image_shape=(8, 8)", "three"]),
        ("resnet", {"depth": 19}, ["depth=19", "18, 34, 50, 101, 152"]),
        ("resnet", {"depth": 20}, ["depth=20", "18, 34"]),
        ("resnet", {"form": "tiny"}, ["form='tiny'", "imagenet, cifar"]),
        ("resnet", {"image_shape": (8, 8, 1)}, ["32x32", "form='cifar'"]),
        ("vit", {"patch": 3}, ["height=8", "multiple of patch=3"]),
        ("vit", {"pool": "max"}, ["pool='max'", "token, mean"]),
        ("vit", {"width": 30}, ["width=30", "multiple of heads=4"]),
        ("transformer_lm", {"layers": 0}, ["layers=0", "from 1"]),
        ("transformer_lm", {"heads": 3}, ["width=128", "heads=3"]),
        ("transformer_lm", {"width": 12.0}, ["width=12.0", "whole"]),
        ("dcgan", {"levels": 7}, ["height=64", "levels"]),
        ("dcgan", {"pixel_range": (1, 0)}, ["pixel_range=(1, 0)"]),
        ("dcgan", {"discriminator_norm": "x"}, ["batch, layer, none"]),
        ("wgan_gp", {"discriminator_norm": "batch"}, ["layer, none"]),
        ("wgan_gp", {"penalty": -1.0}, ["penalty=-1.0", "from 0"]),
    ],
)
def test_bad_settings_name_value_and_allowed(name, settings, words):
    with pytest.raises(ValueError) as caught:
        cases.case(name, **settings)
    for word in words:
        assert word in str(caught.value)
