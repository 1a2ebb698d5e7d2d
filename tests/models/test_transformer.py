"""The transformer's parts, the language model and the Vision Transformer."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from tfmulti_models import transformer, transformer_lm, vit

SMALL = {"context_length": 12, "layers": 2, "width": 32, "heads": 4}


@pytest.fixture(autouse=True)
def _seeded(devices):
    keras.utils.set_random_seed(0)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_equals_kerass(causal):
    layer = transformer.SelfAttention(4, causal=causal)
    x = np.random.default_rng(0).standard_normal((2, 9, 32)).astype("float32")
    got = layer(x)
    q, k, v = (
        np.reshape(part, (2, 9, 4, 8))
        for part in np.split(np.asarray(layer.qkv(x)), 3, axis=-1)
    )
    mixed = keras.ops.dot_product_attention(q, k, v, is_causal=causal)
    expected = layer.project(keras.ops.reshape(mixed, (2, 9, 32)))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_no_token_sees_a_later_one():
    model = transformer_lm.build(transformer_lm.Config(**SMALL))
    tokens = np.arange(12, dtype="int32")[None]
    changed = tokens.copy()
    changed[0, 7:] += 100
    before, after = model(tokens), model(changed)
    np.testing.assert_allclose(before[0, :7], after[0, :7], atol=1e-6)
    assert np.abs(before[0, 7:] - after[0, 7:]).min(axis=0).max() > 1e-6


def test_shorter_sequences_and_unknown_lengths_agree():
    model = transformer_lm.build(transformer_lm.Config(**SMALL))
    tokens = np.arange(12, dtype="int32")[None]
    whole, part = model(tokens), model(tokens[:, :5])
    np.testing.assert_allclose(whole[:, :5], part, atol=1e-5)
    # Traced with the length unknown, where the mask is computed.
    spec = tf.TensorSpec((None, None), "int32")
    traced = tf.function(model, input_signature=[spec])
    np.testing.assert_allclose(traced(tokens), whole, atol=1e-5)


def test_tied_output_is_the_embedding():
    tied = transformer_lm.Config(**SMALL)
    untied = transformer_lm.Config(**SMALL, tied=False)
    extra = transformer_lm.parameter_count(
        untied
    ) - transformer_lm.parameter_count(tied)
    assert extra == tied.vocabulary_size * tied.width
    model = transformer_lm.build(tied)
    tokens = np.arange(12, dtype="int32")[None]
    before = np.asarray(model(tokens))
    assert np.any(before)
    # A vector of zeros must give its token the logit zero.
    table = model.get_layer("embedding").table
    table.assign(np.asarray(table) * (np.arange(256) != 200)[:, None])
    assert not np.any(np.asarray(model(tokens))[..., 200])
    assert np.all(before[..., 200])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gpt2", 124_439_808),
        ("gpt2_medium", 354_823_168),
        ("gpt2_large", 774_030_080),
        ("gpt2_xl", 1_557_611_200),
    ],
)
def test_gpt2_presets_have_the_published_size(name, parameters):
    config = transformer_lm.Config.preset(name)
    assert transformer_lm.parameter_count(config) == parameters


@pytest.mark.parametrize(
    ("size", "patch", "parameters"),
    [
        ("tiny", 16, 5_717_416),
        ("small", 16, 22_050_664),
        ("base", 16, 86_567_656),
        ("base", 32, 88_224_232),
        ("large", 16, 304_326_632),
        ("huge", 14, 632_045_800),
    ],
)
def test_vit_presets_have_the_published_size(size, patch, parameters):
    config = vit.Config.preset(size, patch)
    assert vit.parameter_count(config) == parameters


def test_unknown_presets_are_refused():
    with pytest.raises(ValueError, match="name='gpt3'; allowed: gpt2, "):
        transformer_lm.Config.preset("gpt3")
    with pytest.raises(ValueError, match="size='giant'; allowed: tiny, "):
        vit.Config.preset("giant")


def test_vit_tells_places_by_its_positions_alone():
    model = vit.build(vit.Config(depth=1, pool="token"))
    image = np.random.default_rng(0).random((1, 8, 8, 1), "float32")
    moved = np.roll(image, 2, axis=1)  # By one whole patch.
    table = model.get_layer("positions").table

    def change():
        return np.abs(np.asarray(model(image) - model(moved))).max()

    table.assign(np.zeros((17, 64)))
    blind = change()
    table.assign(np.random.default_rng(1).standard_normal((17, 64)))
    assert blind < 1e-6
    assert change() > 10 * blind


def test_dropout_acts_in_training_alone():
    model = transformer_lm.build(transformer_lm.Config(**SMALL, dropout=0.5))
    tokens = np.arange(12, dtype="int32")[None]
    np.testing.assert_array_equal(model(tokens), model(tokens))
    first = model(tokens, training=True)
    second = model(tokens, training=True)
    assert np.abs(np.asarray(first - second)).max() > 0


def test_branches_start_smaller_in_deeper_models():
    config = transformer_lm.Config(layers=8, width=128)
    block = transformer_lm.build(config).get_layer("block_0")
    assert np.std(block.widen.kernel) == pytest.approx(0.02, rel=0.05)
    for layer in (block.narrow, block.attention.project):
        assert np.std(layer.kernel) == pytest.approx(0.02 / 4, rel=0.05)


def test_sample_continues_what_was_learnt():
    config = transformer_lm.Config(**SMALL, vocabulary_size=5)
    model = transformer_lm.build(config)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-2), loss, jit_compile=False)
    count = np.arange(14)
    # Five phases of 0 1 2 3 4 0 1 2 ...
    x = np.stack([(count[:12] + phase) % 5 for phase in range(5)])
    model.fit(x, (x + 1) % 5, epochs=60, verbose=0)
    made = transformer_lm.sample(
        model,
        np.array([3, 4]),
        18,
        context_length=12,
        temperature=0.1,
    )
    assert made.tolist() == [(3 + i) % 5 for i in range(20)]
