"""The adversarial models: their networks, their steps, and replicas."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from tfmulti_models import dcgan, gan, wgan_gp

from tests.models import cases
from tests.models.graph_flops import forward_flops

ALL = list(cases.small_cases(cases.ADVERSARIAL))
FIRST = [cases.first(name) for name in cases.ADVERSARIAL]
LABELLED = [case for case in ALL if case.config.num_classes]


@pytest.fixture(autouse=True)
def _seeded(devices):
    before = keras.config.dtype_policy()
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy(before)


def _images(config, rows: int) -> np.ndarray:
    low, high = config.pixel_range
    draw = np.random.default_rng(0)
    pixels = draw.random((rows, *config.image_shape), "float32")
    return low + pixels * (high - low)


def _compiled(case: cases.Case, rate: float = 1e-3) -> gan.AdversarialModel:
    model = case.module.build(case.config)
    model.compile(
        keras.optimizers.Adam(rate, 0.5),
        keras.optimizers.Adam(rate, 0.5),
        jit_compile=False,
    )
    return model


def _data(config, rows: int):
    labels = np.arange(rows) % (config.num_classes or 10)
    return _images(config, rows), labels


@pytest.mark.parametrize("case", ALL, ids=cases.identifier)
def test_flops_are_one_image_made_and_scored(case):
    model, config = case.module.build(case.config), case.config
    label: tuple = ()
    if config.num_classes:
        label = (((1, config.num_classes), "float32"),)
    counted = forward_flops(
        lambda *inputs: model.generator(list(inputs) if label else inputs[0]),
        ((1, config.latent_size), "float32"),
        *label,
    ) + forward_flops(
        lambda *inputs: model.discriminator(
            list(inputs) if label else inputs[0]
        ),
        case.input_spec(1),
        *label,
    )
    assert case.module.flops_per_example(config) == counted


def test_paper_size_is_dcgans():
    config = dcgan.Config(image_shape=(64, 64, 3), width=128)
    assert config.base == (4, 4, 1024)
    assert config.channels == (128, 256, 512, 1024)


@pytest.mark.parametrize("case", FIRST, ids=cases.identifier)
def test_images_lie_in_the_range_asked_for(case):
    config = case.module.Config(
        image_shape=(8, 8, 1), width=8, pixel_range=(0, 255)
    )
    model = case.module.build(config)
    images = model.generate(5, seed=1)
    assert images.shape == (5, 8, 8, 1) and images.dtype == np.float32
    assert 0 <= images.min() < 127 < images.max() <= 255
    pixels = model.to_pixels(np.array([0.0, 127.5, 255.0]))
    np.testing.assert_allclose(pixels, [-1, 0, 1], atol=1e-6)


@pytest.mark.parametrize("case", ALL, ids=cases.identifier)
def test_generate_follows_its_seed_alone(case):
    model = _compiled(case)
    first = model.generate(gan.SAMPLE_BATCH + 3, seed=5)
    model.latents(4)
    again = model.generate(gan.SAMPLE_BATCH + 3, seed=5)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - model.generate(len(first), seed=6)).max() > 0


@pytest.mark.parametrize("case", LABELLED, ids=cases.identifier)
def test_labels_matter(case):
    model = _compiled(case)
    model.fit(*_data(case.config, 12), batch_size=12, epochs=3, verbose=0)
    zeros = model.generate(4, seed=1, labels=[0] * 4)
    ones = model.generate(4, seed=1, labels=[1] * 4)
    assert np.abs(zeros - ones).max() > 0
    turns = model.generate(4, seed=1)
    np.testing.assert_array_equal(turns[0], zeros[0])
    np.testing.assert_array_equal(turns[1], ones[1])
    with pytest.raises(ValueError, match="labels=None; allowed"):
        model.train_on_batch(_images(case.config, 4))


@pytest.mark.parametrize("case", ALL, ids=cases.identifier)
def test_each_optimizer_moves_its_own_network(case):
    model = case.module.build(case.config)
    still = keras.optimizers.SGD(0.0)
    model.compile(still, keras.optimizers.SGD(0.1), jit_compile=False)
    before = _trainable(model)
    model.fit(*_data(case.config, 6), batch_size=6, verbose=0)
    after = _trainable(model)
    assert all(map(np.array_equal, before[0], after[0]))
    assert not any(map(np.array_equal, before[1][:1], after[1][:1]))


def _trainable(model) -> list[list[np.ndarray]]:
    return [
        [np.asarray(weight) for weight in network.trainable_weights]
        for network in (model.generator, model.discriminator)
    ]


@pytest.mark.parametrize("case", ALL, ids=cases.identifier)
def test_the_discriminator_learns_to_tell_real_from_made(case):
    model = case.module.build(case.config)
    model.compile(
        keras.optimizers.SGD(0.0),
        keras.optimizers.Adam(1e-3),
        jit_compile=False,
    )
    data = _data(case.config, 32)

    def advantage():
        """How far real images are scored above made ones."""
        made = model.make(32, model.one_hot(data[1]) if labelled else None, 0)
        label = model.one_hot(data[1]) if labelled else None
        pixels = model.to_pixels(data[0])
        real = np.mean(model.score(pixels, label, False))
        return real - np.mean(model.score(made, label, False))

    labelled = case.config.num_classes is not None
    before = advantage()
    history = model.fit(*data, batch_size=32, epochs=25, verbose=0).history
    assert set(history) == {"discriminator_loss", "generator_loss"}
    losses = history["discriminator_loss"]
    assert losses[-1] < losses[0]
    assert advantage() > before


@pytest.mark.parametrize("case", FIRST, ids=cases.identifier)
def test_the_generator_learns_to_please_a_fixed_discriminator(case):
    model = case.module.build(case.config)
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.optimizers.SGD(0.0),
        jit_compile=False,
    )
    data = _data(case.config, 32)
    history = model.fit(*data, batch_size=32, epochs=25, verbose=0).history
    losses = history["generator_loss"]
    assert losses[-1] < losses[0]


def test_the_penalty_is_the_slope_of_the_critic():
    config = wgan_gp.Config(
        image_shape=(8, 8, 1), width=4, discriminator_norm="none"
    )
    model = wgan_gp.build(config)
    # A critic that is linear has the same slope everywhere: make the leaky
    # relu pass everything by scaling one image's score by hand.
    model.score = lambda pixels, label, training: keras.ops.sum(
        3.0 * pixels, axis=(1, 2, 3)
    )
    real, made = _images(config, 4), _images(config, 4) + 1.0
    penalty = model.gradient_penalty(tf.constant(real), made, None, True)
    slope = 3.0 * np.sqrt(64)
    np.testing.assert_allclose(penalty, [(slope - 1) ** 2] * 4, rtol=1e-5)


def test_the_penalty_mixes_no_examples():
    config = wgan_gp.Config(image_shape=(8, 8, 1), width=4)
    model = wgan_gp.build(config)
    x = _images(config, 4)
    whole = np.asarray(model.score(x, None, True))
    alone = [float(model.score(x[i : i + 1], None, True)[0]) for i in range(4)]
    np.testing.assert_allclose(whole, alone, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("case", ALL, ids=cases.identifier)
def test_mixed_precision_keeps_outputs_float32(case, policy):
    keras.config.set_dtype_policy(policy)
    model = _compiled(case)
    assert model.generator.output.dtype == "float32"
    assert model.discriminator.output.dtype == "float32"
    scaled = isinstance(
        model.generator_optimizer, keras.optimizers.LossScaleOptimizer
    )
    assert scaled == (policy == "mixed_float16")
    before = _trainable(model)
    history = model.fit(
        *_data(case.config, 8), batch_size=8, epochs=2, verbose=0
    ).history
    assert np.isfinite(list(history.values())).all()
    after = _trainable(model)
    assert np.isfinite(model.generate(3, seed=0)).all()
    if policy == "mixed_bfloat16":
        assert not np.array_equal(before[0][0], after[0][0])


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("case", ALL, ids=cases.identifier)
def test_save_and_load_keeps_weights_and_optimizers(case, policy, tmp_path):
    keras.config.set_dtype_policy(policy)
    model = _compiled(case)
    data = _data(case.config, 8)
    model.fit(*data, batch_size=8, verbose=0)
    model.save(tmp_path / "gan.keras")
    keras.config.set_dtype_policy("float32")
    loaded = keras.models.load_model(tmp_path / "gan.keras")
    assert loaded.config == case.config
    assert loaded.dtype_policy.name == policy
    np.testing.assert_array_equal(
        loaded.generate(3, seed=1), model.generate(3, seed=1)
    )
    for name in ("generator_optimizer", "discriminator_optimizer"):
        ours, theirs = getattr(model, name), getattr(loaded, name)
        assert ours.get_config() == theirs.get_config()
        for one, other in zip(ours.variables, theirs.variables, strict=True):
            np.testing.assert_array_equal(one, other)
    # The stream of noise goes on where it was.
    np.testing.assert_array_equal(loaded.latents(2), model.latents(2))


@pytest.mark.parametrize("case", FIRST, ids=cases.identifier)
def test_evaluate_changes_no_weight(case):
    model = _compiled(case)
    images, _ = _data(case.config, 12)
    before = model.get_weights()
    losses = model.evaluate(
        tf.data.Dataset.from_tensor_slices(images).batch(5),
        verbose=0,
        return_dict=True,
    )
    assert set(losses) == {"discriminator_loss", "generator_loss"}
    assert all(map(np.array_equal, before, model.get_weights()))


@pytest.mark.parametrize("case", ALL, ids=cases.identifier)
def test_called_on_images_it_scores_them(case):
    model = _compiled(case)
    scores = model.predict(_images(case.config, 6), verbose=0)
    assert scores.shape == (6,)


def test_replicas_sum_to_the_global_mean(devices):
    strategy = _mirrored(devices)
    values = np.array([1.0, 2.0, 3.0, 10.0], "float32")
    mean = gan.MeanOfExamples()

    def part(context):
        start = 2 * context.replica_id_in_sync_group
        return tf.constant(values[start : start + 2])

    parts = strategy.experimental_distribute_values_from_function(part)
    losses = strategy.run(lambda x: mean(x, x), args=(parts,))
    total = strategy.reduce("SUM", losses, axis=None)
    assert float(total) == pytest.approx(values.mean())
    assert float(mean(values, values)) == pytest.approx(values.mean())


@pytest.mark.parametrize("name", cases.ADVERSARIAL)
def test_replicas_take_the_steps_of_one_device(name, devices, monkeypatch):
    """With the same noise everywhere, N replicas end with one's weights."""
    monkeypatch.setattr(
        keras.random, "uniform", lambda shape, seed: tf.fill(shape, 0.3)
    )
    case = cases.case(
        name,
        image_shape=(8, 8, 1),
        width=4,
        discriminator_norm="none",
        synchronized=True,
    )
    images = _images(case.config, 24)

    def train(strategy):
        keras.utils.set_random_seed(1)
        with strategy.scope():
            model = case.module.build(case.config)
            model.compile(
                keras.optimizers.SGD(0.05),
                keras.optimizers.SGD(0.05),
                jit_compile=False,
            )
        model.latents = lambda count: tf.ones((count, 100))
        history = model.fit(
            images, batch_size=12, epochs=2, shuffle=False, verbose=0
        ).history
        weights = [np.asarray(w) for w in model.trainable_variables]
        return weights, list(history.values())

    one, one_history = train(tf.distribute.get_strategy())
    two, two_history = train(_mirrored(devices))
    for mine, theirs in zip(one, two, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(one_history, two_history, rtol=1e-4)


def _mirrored(devices: list[str]) -> tf.distribute.Strategy:
    # No collectives: TensorFlow remembers their keys and shapes for as long
    # as the process lives, so another strategy on these devices would clash.
    return tf.distribute.MirroredStrategy(
        devices[:2],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )
