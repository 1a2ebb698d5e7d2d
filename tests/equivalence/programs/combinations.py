"""What users put together: several features in one training."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.equivalence import problems
from tests.equivalence.outcome import BatchLogs, trained
from tests.equivalence.program import Place, Program, program

L = keras.layers
K = keras.optimizers


@program("combination/accumulation, clipping, uneven end")
def accumulation_clipping(place: Place) -> dict[str, Any]:
    x, y = problems.regression(13)
    return trained(
        place,
        lambda: problems.compiled(
            optimizer=K.Adam(
                0.05, gradient_accumulation_steps=2, global_clipnorm=0.3
            ),
            metrics=["mae"],
        ),
        x,
        10 * y,
        epochs=3,
    )


@program("combination/accumulation, several steps per execution")
def accumulation_executions(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(
            optimizer=K.Adam(0.05, gradient_accumulation_steps=2),
            steps_per_execution=3,
        ),
        *problems.regression(14),
        batch_size=3,
    )


@program("combination/ema, schedule, decay, several steps per execution")
def ema_schedule(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        schedule = K.schedules.CosineDecay(0.05, 8, warmup_steps=2)
        optimizer = K.AdamW(
            schedule,
            weight_decay=0.05,
            use_ema=True,
            ema_momentum=0.8,
            ema_overwrite_frequency=3,
        )
        return problems.compiled(optimizer=optimizer, steps_per_execution=2)

    return trained(place, build, *problems.regression(13))


@program("combination/clipping, masks, weights, unknown length")
def clipping_masks(place: Place) -> dict[str, Any]:
    ids = problems.tokens(11)

    def build() -> keras.Model:
        model = keras.Sequential(
            [
                keras.Input((5,), dtype="int32"),
                L.Embedding(7, 4, mask_zero=True),
                L.GRU(3, return_sequences=True),
                L.Dense(3),
            ]
        )
        return problems.compiled(
            model,
            # Adam would read the count of steps, which is off on one device.
            K.SGD(0.5, momentum=0.5, clipnorm=0.05),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            weighted_metrics=["accuracy"],
        )

    data = tf.data.Dataset.from_tensor_slices(
        (ids, ids % 3, problems.weights(55).reshape(11, 5))
    ).batch(4)
    return trained(place, build, data.filter(lambda *_: True), steps=False)


@program("combination/convolutions, batch normalization, schedule, images")
def small_resnet(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        inputs = keras.Input((6, 6, 2))
        x = L.Conv2D(3, 3, use_bias=False, padding="same")(inputs)
        x = L.BatchNormalization(synchronized=True, momentum=0.8)(x)
        x = L.ReLU()(x)
        y = L.Conv2D(
            3, 3, use_bias=False, padding="same", kernel_regularizer="l2"
        )(x)
        y = L.BatchNormalization(synchronized=True, momentum=0.8)(y)
        x = L.GlobalAveragePooling2D()(L.ReLU()(L.Add()([x, y])))
        model = keras.Model(inputs, L.Dense(3, "softmax")(x))
        schedule = K.schedules.PiecewiseConstantDecay([2], [0.05, 0.01])
        return problems.compiled(
            model,
            K.SGD(schedule, momentum=0.9, nesterov=True),
            "sparse_categorical_crossentropy",
            metrics=["accuracy"],
        )

    return trained(
        place,
        build,
        problems.images(11),
        problems.classes(11)[1],
        validation_data=(problems.images(5, seed=9), np.arange(5) % 3),
        epochs=3,
    )


@program("combination/transformer, weight decay, clipping, warm-up")
def transformer(place: Place) -> dict[str, Any]:
    ids = problems.tokens(11, 6)

    def build() -> keras.Model:
        inputs = keras.Input((5,), dtype="int32")
        x = L.Embedding(7, 4)(inputs)
        # A bias of the keys changes nothing: Adam would enlarge its noise.
        attention = L.MultiHeadAttention(2, 2, use_bias=False)
        x = x + attention(x, x, use_causal_mask=True)
        x = L.LayerNormalization()(x)
        x = x + L.Dense(4)(L.Dense(8, "gelu")(x))
        schedule = K.schedules.CosineDecay(
            0.0, 10, warmup_target=0.02, warmup_steps=3
        )
        return problems.compiled(
            keras.Model(inputs, L.Dense(7)(x)),
            K.AdamW(schedule, weight_decay=0.1, global_clipnorm=0.5),
            keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, ignore_class=0
            ),
            metrics=["sparse_categorical_accuracy"],
        )

    return trained(place, build, ids[:, :-1], ids[:, 1:], epochs=3)


def _mixed(policy: str, name: str, tolerance: float, **options: Any) -> Program:
    """Gives a program in mixed precision; it restores the policy."""

    @program(
        f"combination/{name}",
        "A01",
        tolerance=tolerance,
        why="products in half precision are rounded for each replica's part "
        "of the batch before they are summed",
    )
    def run(place: Place) -> dict[str, Any]:
        before = keras.mixed_precision.global_policy()
        keras.mixed_precision.set_global_policy(policy)
        try:
            return trained(
                place,
                lambda: _mixed_model(**options),
                *problems.regression(11),
            )
        finally:
            keras.mixed_precision.set_global_policy(before)

    return run


def _mixed_model(**options: Any) -> keras.Model:
    model = keras.Sequential(
        [keras.Input((3,)), L.Dense(4, "tanh"), L.Dense(1, dtype="float32")]
    )
    return problems.compiled(
        model,
        K.SGD(0.05, momentum=0.5, global_clipnorm=0.5),
        metrics=["mae"],
        **options,
    )


MIXED = (
    _mixed("mixed_float16", "mixed_float16, uneven end, clipping", 5e-3),
    _mixed(
        "mixed_float16",
        "mixed_float16, several steps per execution",
        5e-3,
        steps_per_execution=2,
    ),
    _mixed("mixed_bfloat16", "mixed_bfloat16, uneven end, clipping", 3e-2),
)


@program("combination/compiled by XLA, even parts")
def compiled_even(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(
            optimizer=K.Adam(0.05, clipnorm=0.5), jit_compile=True
        ),
        *problems.regression(24),
        batch_size=12,
        evaluate=False,
        predict=(),
    )


@program("combination/compiled by XLA, uneven end, several steps")
def compiled_uneven(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(
            optimizer=K.Adam(0.05),
            metrics=["mae"],
            jit_compile=True,
            steps_per_execution=2,
        ),
        *problems.regression(11),
    )


@program("combination/compiled by XLA, accumulation, clipping")
def compiled_accumulation(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(
            optimizer=K.SGD(
                0.5, gradient_accumulation_steps=2, global_clipnorm=0.1
            ),
            jit_compile=True,
        ),
        *problems.regression(36),
        batch_size=12,
        evaluate=False,
        predict=(),
    )


@program("combination/custom metric, weights, logs, early stop")
def metric_weights(place: Place) -> dict[str, Any]:
    logs = BatchLogs()
    x, y = problems.classes(13)
    result = trained(
        place,
        lambda: problems.compiled(
            problems.dense(3, activation="softmax"),
            K.RMSprop(0.02),
            "sparse_categorical_crossentropy",
            metrics=["accuracy"],
            weighted_metrics=["sparse_categorical_crossentropy"],
        ),
        x,
        y,
        sample_weight=problems.weights(13),
        validation_split=0.2,
        epochs=4,
        callbacks=[
            logs,
            keras.callbacks.EarlyStopping("val_loss", patience=1),
            keras.callbacks.LearningRateScheduler(lambda e, r: r * 0.9),
        ],
    )
    return result | logs.arrays()


@program("combination/shared embedding, sparse gradients, accumulation, ema")
def shared_embedding(place: Place) -> dict[str, Any]:
    ids = problems.tokens(11)

    def build() -> keras.Model:
        a, b = (
            keras.Input((5,), dtype="int32"),
            keras.Input((5,), dtype="int32"),
        )
        table = L.Embedding(7, 3, embeddings_regularizer="l2")
        pooled = [L.GlobalAveragePooling1D()(table(i)) for i in (a, b)]
        score = L.Dense(1)(L.Concatenate()(pooled))
        return problems.compiled(
            keras.Model([a, b], score),
            K.Adam(
                0.05,
                gradient_accumulation_steps=2,
                use_ema=True,
                ema_momentum=0.9,
            ),
        )

    return trained(
        place, build, [ids, ids[::-1].copy()], problems.regression(11)[1]
    )


class Rematerialised(keras.layers.Layer):
    """Computes its hidden values again when the gradient asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.last = L.Dense(4, "tanh"), L.Dense(1)

    def build(self, shape: Any) -> None:
        self.hidden.build(shape)
        self.last.build((*shape[:-1], 4))

    def call(self, x: Any) -> Any:
        return self.last(keras.remat(self.hidden.call)(x))


@program("combination/rematerialised layer, uneven end")
def rematerialised(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((3,)), Rematerialised()])
        return problems.compiled(model, K.Adam(0.05))

    return trained(place, build, *problems.regression(11))
