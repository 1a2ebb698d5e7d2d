"""fit, evaluate and predict on two replicas give what one device gives.

A selection that runs in a minute; `tests/equivalence` has the whole table.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.keras3.programs import assert_same, data, fitted, mlp, scope_of


def _optimizers():
    from keras import optimizers as o

    return {
        "sgd": lambda: o.SGD(0.1),
        "clipnorm": lambda: o.Adam(0.1, clipnorm=0.01),
        "global_clipnorm": lambda: o.Adam(0.1, global_clipnorm=0.01),
        "clipvalue": lambda: o.Adam(0.1, clipvalue=0.01),
        "accumulation": lambda: o.SGD(
            0.1, gradient_accumulation_steps=2, clipnorm=0.1
        ),
        "ema": lambda: o.Adam(0.1, use_ema=True, ema_overwrite_frequency=2),
        "loss_scale": lambda: o.LossScaleOptimizer(o.Adam(0.1)),
        "adamw": lambda: o.AdamW(0.1, weight_decay=0.1),
    }


@pytest.mark.parametrize("name", list(_optimizers()))
def test_optimizer(two, name):
    optimizer = _optimizers()[name]
    assert_same(fitted(two, optimizer), fitted(None, optimizer))


@pytest.mark.parametrize(
    "compile_args",
    [
        {"steps_per_execution": 2},
        {"steps_per_execution": 3},
        {"run_eagerly": True},
        {"jit_compile": True},
        {"jit_compile": True, "steps_per_execution": 2},
    ],
    ids=str,
)
def test_execution(two, compile_args):
    optimizer = _optimizers()["global_clipnorm"]
    assert_same(
        fitted(two, optimizer, **compile_args),
        fitted(None, optimizer, **compile_args),
    )


@pytest.mark.parametrize("rows", [8, 15, 17, 9, 1])
def test_uneven_and_empty_parts(three, rows):
    optimizer = _optimizers()["sgd"]
    assert_same(
        fitted(three, optimizer, rows=rows),
        fitted(None, optimizer, rows=rows),
    )


@pytest.mark.parametrize("rows", [16, 23, 17])
def test_synchronised_batch_normalization(two, rows):
    import keras

    def run(strategy):
        x, y = data(rows)
        with scope_of(strategy):
            model = keras.Sequential(
                [
                    keras.Input((4,)),
                    keras.layers.BatchNormalization(synchronized=True),
                    keras.layers.Dense(1, kernel_initializer="ones"),
                ]
            )
            model.compile("sgd", "mse")
        model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
        return {str(i): w for i, w in enumerate(model.get_weights())}

    assert_same(run(two), run(None), tolerance=1e-4)


@pytest.mark.parametrize("rows", [16, 23, 17])
def test_state_of_a_layer(two, rows):
    import keras

    @keras.saving.register_keras_serializable("tests")
    class MovingMean(keras.Layer):
        def build(self, shape):
            self.mean = self.add_weight(
                shape=(shape[-1],), initializer="zeros", trainable=False
            )

        def call(self, x, training=False):
            if training:
                mean = keras.ops.mean(x, axis=0)
                self.mean.assign(0.8 * self.mean + 0.2 * mean)
            return x - keras.ops.stop_gradient(self.mean) * 0.0

    optimizer = _optimizers()["sgd"]
    assert_same(
        fitted(two, optimizer, rows=rows, layers=lambda: [MovingMean()]),
        fitted(None, optimizer, rows=rows, layers=lambda: [MovingMean()]),
    )


@pytest.mark.parametrize(
    "reduction", ["sum", "sum_over_batch_size", "mean_with_sample_weight"]
)
def test_masked_and_weighted_tokens(two, reduction):
    import keras

    random = np.random.RandomState(0)
    x = random.randint(0, 9, (13, 6)) * (random.rand(13, 6) > 0.4)
    weight = random.rand(13, 6)

    def run(strategy):
        with scope_of(strategy):
            model = keras.Sequential(
                [
                    keras.Input((6,)),
                    keras.layers.Embedding(
                        9,
                        4,
                        mask_zero=True,
                        embeddings_initializer=(
                            keras.initializers.RandomNormal(seed=1)
                        ),
                    ),
                    keras.layers.Dense(
                        9,
                        kernel_initializer=keras.initializers.RandomNormal(
                            seed=2
                        ),
                    ),
                ]
            )
            model.compile(
                keras.optimizers.SGD(0.1),
                keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True, reduction=reduction
                ),
                weighted_metrics=["accuracy"],
            )
        history = model.fit(
            x, x, 4, 2, 0, sample_weight=weight, shuffle=False
        ).history
        found = {k: np.array(v) for k, v in history.items()}
        return found | {
            str(i): w for i, w in enumerate(model.get_weights())
        }

    assert_same(run(two), run(None))


def test_a_loss_that_returns_a_scalar(two):
    import keras

    def loss(y, prediction):
        return keras.ops.mean(keras.ops.square(y - prediction))

    optimizer = _optimizers()["sgd"]
    assert_same(
        fitted(two, optimizer, loss=loss), fitted(None, optimizer, loss=loss)
    )


def test_on_batch_methods(two):
    x, y = data(5)
    found = []
    for strategy in (None, two):
        model = mlp(strategy, _optimizers()["sgd"])
        found.append(
            {
                "train": np.array(model.train_on_batch(x, y)),
                "test": np.array(model.test_on_batch(x, y)),
                "predict": model.predict_on_batch(x),
            }
        )
    assert_same(found[1], found[0])


def test_logs_at_batch_ends_are_global(two):
    import keras

    x, y = data(23)
    seen = {}
    for strategy in (None, two):
        kept = seen.setdefault(strategy, [])
        model = mlp(
            strategy,
            _optimizers()["sgd"],
            metrics=[keras.metrics.RootMeanSquaredError(name="rmse")],
        )
        model.fit(
            x,
            y,
            batch_size=8,
            shuffle=False,
            verbose=0,
            callbacks=[
                keras.callbacks.LambdaCallback(
                    on_train_batch_end=lambda batch, logs, kept=kept: (
                        kept.append([logs["loss"], logs["rmse"]])
                    )
                )
            ],
        )
    np.testing.assert_allclose(seen[two], seen[None], rtol=1e-5)


def test_generator_loses_no_batch_and_counts_its_steps(two):
    x, y = data(24)

    def batches():
        for begin in range(0, 24, 4):
            yield x[begin : begin + 4], y[begin : begin + 4]

    model = mlp(two, _optimizers()["sgd"])
    model.fit(batches(), verbose=0)
    assert int(model.optimizer.iterations) == 6
    assert len(model.predict(batches(), verbose=0)) == 24


def test_shuffled_epochs_differ_and_see_each_example_once(two):
    import keras
    import tensorflow as tf

    class Recorder(keras.Model):
        def __init__(self):
            super().__init__()
            self.seen = []

        def train_step(self, batch):
            rows = tf.numpy_function(self._note, [batch[0]], tf.float32)
            return {"rows": tf.reduce_sum(rows)}

        def _note(self, x):
            self.seen += x[:, 0].tolist()
            return x

    keras.utils.set_random_seed(1)
    with two.scope():
        model = Recorder()
        model.compile()
    x = np.arange(40, dtype="float32")[:, None]
    model.fit(x, x, batch_size=40, epochs=3, verbose=0)
    epochs = [tuple(model.seen[i : i + 40]) for i in (0, 40, 80)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(40))
    assert len(set(epochs)) == 3


def test_the_arrays_of_a_generator_are_never_written_to(two):
    import keras

    def aligned(array):
        memory = np.zeros(array.nbytes + 128, "uint8")
        start = -memory.ctypes.data % 64
        view = memory[start : start + array.nbytes].view(array.dtype)
        view = view.reshape(array.shape)
        view[...] = array
        return view

    x, _ = data(203, 8)
    x = aligned(x)
    y = aligned((x[:, 0] > 0).astype("float32"))
    kept = x.copy(), y.copy()

    def batches():
        for begin in range(0, 203, 32):
            yield x[begin : begin + 32], y[begin : begin + 32]

    with two.scope():
        model = keras.Sequential(
            [keras.Input((8,)), keras.layers.Dense(1, "sigmoid")]
        )
        model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    for _ in range(6):
        model.evaluate(batches(), verbose=0)
    model.fit(batches(), verbose=0)
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(y, kept[1])
