"""Models as people write them: layers, state, reuse and late building."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.equivalence import problems
from tests.equivalence.outcome import flat, state_of, trained
from tests.equivalence.program import Place, Program, program

L = keras.layers
R = keras.regularizers


def _layers(
    name: str,
    shape: tuple[int, ...],
    make: Callable[[], list[Any]],
    *reports: str,
    rows: int = 10,
    tolerance: float = 1e-5,
    why: str = "",
) -> Program:
    """Gives the program that trains layers between an input and a number."""

    @program(f"model/{name}", *reports, tolerance=tolerance, why=why)
    def run(place: Place) -> dict[str, Any]:
        draw = np.random.RandomState(0)
        x = draw.randn(rows, *shape).astype("float32")

        def build() -> keras.Model:
            return problems.compiled(
                keras.Sequential([keras.Input(shape), *make(), L.Dense(1)]),
                keras.optimizers.SGD(0.05),
            )

        return trained(place, build, x, problems.regression(rows)[1])

    return run


LAYERS = (
    _layers(
        "convolutions and pooling",
        (6, 6, 2),
        lambda: [
            L.Conv2D(3, 3, activation="relu"),
            L.MaxPooling2D(),
            L.Flatten(),
        ],
    ),
    _layers(
        "depthwise and transposed convolutions",
        (4, 4, 2),
        lambda: [
            L.SeparableConv2D(3, 3, padding="same"),
            L.Conv2DTranspose(2, 2),
            L.GlobalAveragePooling2D(),
        ],
    ),
    _layers("lstm", (4, 2), lambda: [L.LSTM(3)]),
    _layers("lstm on empty replicas", (4, 2), lambda: [L.LSTM(3)], rows=5),
    _layers(
        "gru both ways",
        (4, 2),
        lambda: [L.Bidirectional(L.GRU(2, return_sequences=True)), L.GRU(2)],
    ),
    _layers(
        "layer and group normalization",
        (4, 4),
        lambda: [
            L.LayerNormalization(),
            L.GroupNormalization(2),
            L.RMSNormalization(),
            L.Flatten(),
        ],
    ),
    _layers(
        "time distributed",
        (3, 2),
        lambda: [L.TimeDistributed(L.Dense(2, "tanh")), L.Flatten()],
    ),
    _layers(
        "synchronized batch normalization",
        (3,),
        lambda: [
            L.Dense(4, use_bias=False),
            L.BatchNormalization(synchronized=True),
            L.Activation("tanh"),
        ],
        "A28",
        rows=11,
    ),
    _layers(
        "synchronized batch normalization of images",
        (4, 4, 2),
        lambda: [
            L.Conv2D(3, 2, use_bias=False),
            L.BatchNormalization(synchronized=True, momentum=0.8),
            L.ReLU(),
            L.GlobalAveragePooling2D(),
            L.BatchNormalization(synchronized=True, momentum=0.8),
        ],
        rows=11,
        tolerance=1e-4,
        why="Keras takes the variance as E(x^2) - E(x)^2, which loses digits "
        "where the mean is larger than the spread",
    ),
    _layers(
        "synchronized batch normalization on empty replicas",
        (3,),
        lambda: [L.BatchNormalization(synchronized=True)],
        "A07",
        rows=9,
    ),
    _layers(
        "spectral normalization",
        (3,),
        lambda: [L.SpectralNormalization(L.Dense(4))],
        "A28",
    ),
    _layers(
        "constraints",
        (3,),
        lambda: [
            L.Dense(4, kernel_constraint="unit_norm"),
            L.Dense(4, kernel_constraint=keras.constraints.MaxNorm(0.7)),
            L.Dense(4, bias_constraint="non_neg"),
        ],
        "A28",
    ),
    _layers(
        "regularizers",
        (3,),
        lambda: [
            L.Dense(4, kernel_regularizer=R.L2(0.05)),
            L.Dense(4, "tanh", kernel_regularizer=R.L1(0.02)),
            L.Dense(3, kernel_regularizer=R.OrthogonalRegularizer(0.1)),
            L.Dense(3, bias_regularizer=R.L1L2(0.1, 0.1)),
        ],
    ),
    _layers(
        "activity regularizers",
        (3,),
        lambda: [
            L.Dense(4, "tanh", activity_regularizer=R.L2(0.1)),
            L.ActivityRegularization(l1=0.05),
        ],
    ),
    _layers(
        "dropout that keeps all",
        (3,),
        lambda: [L.Dropout(0.0), L.GaussianNoise(0.0), L.GaussianDropout(0.0)],
    ),
    _layers(
        "einsum and lambda",
        (3, 2),
        lambda: [
            L.EinsumDense("abc,cd->abd", (None, 4)),
            L.Lambda(lambda t: tf.reduce_max(t, axis=1)),
        ],
    ),
    _layers(
        "prelu and unit normalization",
        (3,),
        lambda: [L.Dense(4), L.PReLU(), L.UnitNormalization()],
    ),
)


@program("model/attention")
def attention(place: Place) -> dict[str, Any]:
    ids = problems.tokens(length=4)

    def build() -> keras.Model:
        inputs = keras.Input((4,), dtype="int32")
        x = L.Embedding(7, 4, mask_zero=True)(inputs)
        x = L.Add()([x, L.MultiHeadAttention(2, 2)(x, x)])
        x = L.LayerNormalization()(x)
        x = L.GlobalAveragePooling1D()(x)
        return problems.compiled(keras.Model(inputs, L.Dense(1)(x)))

    return trained(place, build, ids, problems.regression()[1])


@program("model/masked lstm")
def masked_lstm(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        model = keras.Sequential(
            [
                keras.Input((5,), dtype="int32"),
                L.Embedding(7, 3, mask_zero=True),
                L.LSTM(3),
                L.Dense(1),
            ]
        )
        return problems.compiled(model)

    return trained(place, build, problems.tokens(), problems.regression()[1])


@program("model/shared layers and several outputs")
def shared(place: Place) -> dict[str, Any]:
    x, y = problems.regression()

    def build() -> keras.Model:
        a, b = keras.Input((2,)), keras.Input((2,))
        tower = L.Dense(3, "tanh")
        first, second = tower(a), tower(b)
        same = L.Dot(1, name="same")([first, second])
        each = L.Dense(1, name="each")(first)
        return problems.compiled(
            keras.Model([a, b], [same, each]),
            loss=["mse", "mae"],
            loss_weights=[1.0, 0.5],
        )

    return trained(place, build, [x[:, :2], x[:, 1:]], [y, -y])


@program("model/nested models")
def nested(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        inner = keras.Sequential(
            [
                keras.Input((3,)),
                L.Dense(3, "tanh", kernel_regularizer="l2"),
                L.BatchNormalization(synchronized=True),
            ]
        )
        inputs = keras.Input((3,))
        outputs = L.Dense(1)(inner(inner(inputs)))
        return problems.compiled(keras.Model(inputs, outputs))

    return trained(place, build, *problems.regression(11))


@program("model/frozen batch normalization")
def frozen(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        normal = L.BatchNormalization()
        normal.trainable = False
        model = keras.Sequential([keras.Input((3,)), normal, L.Dense(1)])
        normal.moving_mean.assign([0.5, -0.5, 1.0])
        return problems.compiled(model)

    return trained(place, build, *problems.regression())


@program("model/batch normalization in inference")
def inference(place: Place) -> dict[str, Any]:
    x, y = problems.regression(9)
    with place.scope():
        model = problems.compiled(
            keras.Sequential(
                [keras.Input((3,)), L.BatchNormalization(), L.Dense(1)]
            )
        )
    model.layers[0].moving_variance.assign([4.0, 0.5, 2.0])
    logs = model.evaluate(x, y, batch_size=4, verbose=0, return_dict=True)
    outputs = model.predict(x, batch_size=4, verbose=0)
    return logs | flat("predict", outputs) | state_of(place, model)


@program("model/batch normalization of equal parts", "A28")
def equal_parts(place: Place) -> dict[str, Any]:
    # The same three rows again and again: all parts have equal statistics.
    x = np.tile(problems.regression(3)[0], (12, 1))

    def build() -> keras.Model:
        model = keras.Sequential(
            [keras.Input((3,)), L.BatchNormalization(momentum=0.7), L.Dense(1)]
        )
        return problems.compiled(model)

    return trained(place, build, x, x.sum(1, keepdims=True), batch_size=36)


class MovingMean(keras.layers.Layer):
    """Keeps a moving mean of its input, and how often it was called."""

    def build(self, shape: Any) -> None:
        self.mean = self.add_weight(
            shape=(shape[-1],), initializer="zeros", trainable=False
        )
        self.calls = self.add_weight(
            shape=(), initializer="zeros", trainable=False, dtype="int32"
        )

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            batch = keras.ops.mean(x, axis=0)
            self.mean.assign(0.5 * self.mean + 0.5 * batch)
            self.calls.assign_add(1)
        return x


@program("model/layer with state of its own", "A28")
def own_state(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((3,)), MovingMean(), L.Dense(1)])
        return problems.compiled(model)

    # Parts are equal on 2 and 4 replicas; on 3 the weights must tell.
    return trained(place, build, *problems.regression(12))


@program("model/layer with state of its own, uneven parts", "A28")
def own_state_uneven(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((3,)), MovingMean(), L.Dense(1)])
        return problems.compiled(model)

    return trained(place, build, *problems.regression(9))


class Late(keras.Model):
    """Creates its layers' weights at the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = L.Dense(4, "tanh")
        self.last = L.Dense(1)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.last(self.hidden(x))


@program("model/subclass, built late")
def late(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(Late(), keras.optimizers.Adam(0.05)),
        *problems.regression(),
    )


@program("model/subclass, predicts before it trains")
def late_predict(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    with place.scope():
        model = problems.compiled(Late())
    first = model.predict(x, batch_size=4, verbose=0)
    history = model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    return state_of(place, model) | {"first": first} | history.history


@program("model/sequential without an input")
def no_input(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        return problems.compiled(
            keras.Sequential([L.Dense(4, "relu"), L.Dense(1)]),
            keras.optimizers.Adam(0.05),
            metrics=["mae"],
        )

    return trained(place, build, *problems.regression())


class DictModel(keras.Model):
    """Takes a dict and gives a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = L.Dense(3, "tanh")
        self.head = L.Dense(1)

    def call(self, inputs: dict[str, Any]) -> dict[str, Any]:
        hidden = self.tower(inputs["x"])
        return {"out": self.head(hidden), "size": keras.ops.sum(hidden, 1)}


@program("model/subclass with dicts")
def dicts(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    return trained(
        place,
        lambda: problems.compiled(DictModel(), loss={"out": "mse"}),
        {"x": x},
        {"out": y},
    )


class Penalty(keras.layers.Layer):
    """Adds a loss per example and one of its weights."""

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x: Any) -> Any:
        out = x * self.scale
        self.add_loss(0.1 * keras.ops.mean(out**2))
        self.add_loss(0.01 * keras.ops.sum(self.scale**2))
        return out


@program("model/added losses")
def added_losses(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((3,)), Penalty(), L.Dense(1)])
        return problems.compiled(model)

    return trained(place, build, *problems.regression())


@program("model/preprocessing layers adapted before")
def adapted(place: Place) -> dict[str, Any]:
    x, y = problems.regression()

    def build() -> keras.Model:
        normal = L.Normalization()
        normal.adapt(x)
        model = keras.Sequential([keras.Input((3,)), normal, L.Dense(1)])
        return problems.compiled(model)

    return trained(place, build, x, y)


@program("model/weights from another model")
def transferred(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    with place.scope():
        first, second = problems.compiled(), problems.compiled()
    first.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    second.set_weights(first.get_weights())
    second.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    return state_of(place, second)


@program("model/cloned")
def cloned(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        first = problems.dense()
        second = keras.models.clone_model(first)
        second.set_weights(first.get_weights())
        return problems.compiled(second)

    return trained(place, build, *problems.regression())
