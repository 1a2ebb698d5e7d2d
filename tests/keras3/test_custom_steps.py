"""train_steps and loops of a person's own, as on one device."""

from __future__ import annotations

import numpy as np
import pytest

from tests.keras3.programs import assert_same, data, mlp, scope_of


def _gan_class():
    import keras
    import tensorflow as tf

    class Gan(keras.Model):
        """No `call`, two optimizers, built when they are first used."""

        def __init__(self):
            super().__init__()
            ones = {"kernel_initializer": "ones"}
            self.generator = keras.Sequential(
                [keras.Input((2,)), keras.layers.Dense(1, **ones)]
            )
            self.critic = keras.Sequential(
                [keras.Input((1,)), keras.layers.Dense(1, **ones)]
            )
            self.tracker = keras.metrics.Mean("critic_loss")

        def compile(self, generator_optimizer, critic_optimizer):
            super().compile()
            self.generator_optimizer = generator_optimizer
            self.critic_optimizer = critic_optimizer

        @property
        def metrics(self):
            return [self.tracker]

        def train_step(self, batch):
            noise, real = batch
            with tf.GradientTape() as tape:
                fake = self.critic(self.generator(noise))
                loss = tf.reduce_mean(fake) - tf.reduce_mean(
                    self.critic(real) - tf.square(self.critic(real))
                )
            weights = self.critic.trainable_variables
            gradients = tape.gradient(loss, weights)
            gradients, norm = tf.clip_by_global_norm(gradients, 0.5)
            self.critic_optimizer.apply_gradients(
                zip(gradients, weights, strict=True)
            )
            with tf.GradientTape() as tape:
                fooled = -tf.reduce_mean(self.critic(self.generator(noise)))
            weights = self.generator.trainable_variables
            self.generator_optimizer.apply_gradients(
                zip(tape.gradient(fooled, weights), weights, strict=True)
            )
            self.tracker.update_state(loss)
            return {
                "critic_loss": self.tracker.result(),
                "fooled": fooled,
                "norm": norm,
            }

    return Gan


@pytest.mark.parametrize("rows", [16, 13])
@pytest.mark.parametrize("spe", [1, 2])
def test_gan_without_call_and_with_lazy_optimizers(two, rows, spe):
    import keras

    random = np.random.RandomState(0)
    noise = random.randn(rows, 2).astype("float32")
    real = random.randn(rows, 1).astype("float32")
    found = []
    for strategy in (None, two):
        with scope_of(strategy):
            model = _gan_class()()
            model.compile(
                keras.optimizers.SGD(0.05), keras.optimizers.Adam(0.1)
            )
            model.steps_per_execution = spe
        history = model.fit(
            noise, real, batch_size=4, epochs=2, shuffle=False, verbose=0
        ).history
        weights = [
            *model.generator.get_weights(),
            *model.critic.get_weights(),
        ]
        found.append(
            {k: np.array(v) for k, v in history.items()}
            | {str(i): w for i, w in enumerate(weights)}
        )
    assert_same(found[1], found[0])


@pytest.mark.parametrize("rows", [16, 23])
def test_loop_around_strategy_run(two, rows):
    import keras
    import tensorflow as tf

    x, y = data(rows)
    found = []
    for strategy in (tf.distribute.get_strategy(), two):
        model = mlp(strategy, lambda: keras.optimizers.SGD())
        with strategy.scope():
            optimizer = keras.optimizers.Adam(0.1, clipnorm=0.01)
            loss_of = keras.losses.MeanSquaredError()
        batches = strategy.experimental_distribute_dataset(
            tf.data.Dataset.from_tensor_slices((x[:16], y[:16])).batch(8)
        )

        @tf.function
        def step(
            x,
            y,
            strategy=strategy,
            model=model,
            optimizer=optimizer,
            loss_of=loss_of,
        ):
            def replica(x, y):
                with tf.GradientTape() as tape:
                    loss = loss_of(y, model(x, training=True))
                weights = model.trainable_variables
                gradients = tape.gradient(loss, weights)
                optimizer.apply_gradients(
                    zip(gradients, weights, strict=True)
                )

            strategy.run(replica, args=(x, y))

        for batch in batches:
            step(*batch)
        found.append({str(i): w for i, w in enumerate(model.get_weights())})
    assert_same(found[1], found[0])


def test_dropout_and_noise_differ_between_replicas(two):
    import keras
    import tensorflow as tf

    with two.scope():
        layer = keras.layers.Dropout(0.5, seed=1)

    @tf.function
    def drawn():
        def replica():
            seeded = layer(tf.ones([64]), training=True)
            return seeded, keras.random.normal((64,))

        return two.run(replica)

    from tfmulti.keras3 import randomness

    randomness.global_generator_in(two)
    state = randomness.capture_state()

    @tf.function
    def shared():
        def replica():
            with randomness.shared_state(state):
                return layer(tf.ones([64]), training=True), (
                    keras.random.normal((64,))
                )

        return two.run(replica)

    for values in shared():
        first, second = (v.numpy() for v in values.values)
        assert not np.array_equal(first, second)


def test_replica_zero_keeps_the_stream_of_one_device(two):
    import keras
    import tensorflow as tf

    alone = keras.random.SeedGenerator(7)
    with two.scope():
        shared = keras.random.SeedGenerator(7)
    wanted = [alone.next().numpy().tolist() for _ in range(3)]

    @tf.function
    def draw():
        return two.run(shared.next)

    got = [draw().values[0].numpy().tolist() for _ in range(3)]
    assert got == wanted


def test_random_layer_inside_a_dataset_map(two):
    import keras
    import tensorflow as tf

    with two.scope():
        flip = keras.layers.RandomFlip(seed=1)
        model = keras.Sequential(
            [
                keras.Input((4, 4, 1)),
                keras.layers.Flatten(),
                keras.layers.Dense(1),
            ]
        )
        model.compile("sgd", "mse")
    images = np.random.rand(8, 4, 4, 1).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((images, np.zeros((8, 1))))
    dataset = dataset.batch(4).map(lambda x, y: (flip(x, training=True), y))
    history = model.fit(dataset, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()


def test_sums_of_mixed_dtypes_and_sparse_values(two):
    import tensorflow as tf

    from tfmulti.keras3 import reduction

    @tf.function
    def sums():
        def replica():
            values = [
                tf.ones([2]),
                None,
                tf.ones([3], tf.float64) * 2,
                tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]), [4, 2]),
                tf.constant(3, tf.int32),
            ]
            found = reduction.sum_over_replicas(values)
            assert found[1] is None
            found[3] = tf.convert_to_tensor(found[3])
            return [v for v in found if v is not None]

        return two.run(replica)

    got = [v.values[1].numpy().tolist() for v in sums()]
    assert got == [[2, 2], [4, 4, 4], [[0, 0], [2, 2], [0, 0], [0, 0]], 6]


def test_the_unseeded_generator_moves_to_the_strategy_that_draws(two, three):
    import keras
    import tensorflow as tf

    from tfmulti.keras3 import randomness

    keras.utils.set_random_seed(3)
    states = []
    for strategy in (two, three, two):
        randomness.global_generator_in(strategy)
        state = randomness.capture_state()

        def draw(state=state):
            with randomness.shared_state(state):
                return keras.random.normal((2,))

        tf.function(lambda s=strategy, d=draw: s.run(d))()
        generator = keras.src.random.seed_generator.global_seed_generator()
        states.append(generator.state.numpy().tolist())
    # It goes on where it was, and never begins again.
    assert states[0] != states[1] != states[2] != states[0]
