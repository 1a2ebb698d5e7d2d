"""Every optimizer of Keras, and what can be asked of one.

All of them train on ten rows in batches of 4, 4 and 2, so that parts are
uneven on 3 and 4 replicas and some are empty. What counts is the weights and
the optimizer's own state.

ScheduleFreeAdamW is left out: on one device, in graph mode, stock Keras makes
its slot anew in every step (A44), so that there is no right value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from tests.equivalence import problems
from tests.equivalence.outcome import trained
from tests.equivalence.program import Place, Program, program

K = keras.optimizers
S = keras.optimizers.schedules


def _row(
    name: str,
    make: Callable[[], Any],
    *reports: str,
    epochs: int = 2,
    scale: float = 1.0,
    tolerance: float = 1e-5,
    why: str = "",
) -> Program:
    """Gives the program that trains the common problem with an optimizer."""

    @program(f"optimizer/{name}", *reports, tolerance=tolerance, why=why)
    def run(place: Place) -> dict[str, Any]:
        x, y = problems.regression()
        return trained(
            place,
            lambda: problems.compiled(optimizer=make()),
            x,
            y * scale,
            epochs=epochs,
            evaluate=False,
            predict=(),
        )

    return run


EVERY = (
    _row("adadelta", lambda: K.Adadelta(0.5)),
    _row("adafactor", lambda: K.Adafactor(0.05)),
    _row("adagrad", lambda: K.Adagrad(0.1)),
    _row("adam", lambda: K.Adam(0.05)),
    _row("adam amsgrad", lambda: K.Adam(0.05, amsgrad=True)),
    _row("adamw", lambda: K.AdamW(0.05, weight_decay=0.01)),
    _row("adamax", lambda: K.Adamax(0.05)),
    _row("ftrl", lambda: K.Ftrl(0.1, l1_regularization_strength=0.01)),
    _row("lamb", lambda: K.Lamb(0.05)),
    _row("lion", lambda: K.Lion(0.01)),
    _row(
        "muon",
        lambda: K.Muon(0.05),
        tolerance=1e-4,
        why="its Newton-Schulz iteration enlarges small singular values, and "
        "their rounding, by 3.4 in each of its steps",
    ),
    _row("nadam", lambda: K.Nadam(0.05)),
    _row("rmsprop", lambda: K.RMSprop(0.02)),
    _row(
        "rmsprop centered momentum",
        lambda: K.RMSprop(0.02, momentum=0.9, centered=True),
    ),
    _row("sgd", lambda: K.SGD(0.05)),
    _row("sgd momentum", lambda: K.SGD(0.05, momentum=0.9)),
    _row("sgd nesterov", lambda: K.SGD(0.05, momentum=0.9, nesterov=True)),
    _row("loss scale sgd", lambda: K.LossScaleOptimizer(K.SGD(0.05))),
    _row("loss scale adam", lambda: K.LossScaleOptimizer(K.Adam(0.05))),
    _row(
        "loss scale grows",
        lambda: K.LossScaleOptimizer(K.SGD(0.05), dynamic_growth_steps=2),
    ),
)

CLIPPING = (
    _row("clipnorm", lambda: K.SGD(0.05, clipnorm=0.3), scale=20.0),
    _row(
        "global clipnorm", lambda: K.SGD(0.05, global_clipnorm=0.5), scale=20.0
    ),
    _row("clipvalue", lambda: K.SGD(0.05, clipvalue=0.1), scale=20.0),
    _row(
        "loss scale global clipnorm",
        lambda: K.LossScaleOptimizer(K.Adam(0.05, global_clipnorm=0.5)),
        scale=20.0,
    ),
    _row(
        "adam global clipnorm ema",
        lambda: K.Adam(0.05, global_clipnorm=0.5, use_ema=True),
        scale=20.0,
    ),
)

ACCUMULATION = (
    _row(
        "accumulation 2",
        lambda: K.SGD(0.05, gradient_accumulation_steps=2),
    ),
    _row(
        "accumulation 3 adam",
        lambda: K.Adam(0.05, gradient_accumulation_steps=3),
        epochs=3,
    ),
    _row(
        "accumulation clipping",
        lambda: K.SGD(0.05, gradient_accumulation_steps=3, global_clipnorm=0.5),
        scale=20.0,
    ),
    _row(
        "accumulation ends in the middle",
        lambda: K.Adam(0.05, gradient_accumulation_steps=4),
    ),
    _row(
        "accumulation ema decay",
        lambda: K.AdamW(
            0.05,
            weight_decay=0.01,
            gradient_accumulation_steps=2,
            use_ema=True,
            ema_momentum=0.9,
        ),
    ),
    _row(
        "accumulation loss scale",
        lambda: K.LossScaleOptimizer(
            K.SGD(0.05, gradient_accumulation_steps=2)
        ),
    ),
)

AVERAGING = (
    _row("ema", lambda: K.SGD(0.05, use_ema=True, ema_momentum=0.5), "A27"),
    _row(
        "ema overwrite",
        lambda: K.SGD(
            0.05, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2
        ),
        "A27",
    ),
    _row(
        "ema schedule",
        lambda: K.Adam(
            S.ExponentialDecay(0.1, 2, 0.5),
            use_ema=True,
            ema_momentum=0.8,
            ema_overwrite_frequency=3,
        ),
    ),
)

SCHEDULES = (
    _row(
        "cosine",
        lambda: K.SGD(S.CosineDecay(0.1, 5, warmup_steps=2, warmup_target=0.2)),
    ),
    _row("cosine restarts", lambda: K.SGD(S.CosineDecayRestarts(0.1, 2))),
    _row("exponential", lambda: K.Adam(S.ExponentialDecay(0.1, 2, 0.5))),
    _row("inverse time", lambda: K.SGD(S.InverseTimeDecay(0.1, 2, 0.5))),
    _row(
        "piecewise",
        lambda: K.SGD(S.PiecewiseConstantDecay([1, 3], [0.1, 0.05, 0.01])),
    ),
    _row("polynomial", lambda: K.SGD(S.PolynomialDecay(0.1, 5))),
)


@program("optimizer/decay leaves biases out")
def decay_left_out(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        optimizer = K.AdamW(0.05, weight_decay=0.1)
        optimizer.exclude_from_weight_decay(var_names=["bias"])
        return problems.compiled(optimizer=optimizer)

    return trained(place, build, *problems.regression(), evaluate=False)


@program("optimizer/several for parts of a model")
def several(place: Place) -> dict[str, Any]:
    def build() -> keras.Model:
        model = problems.dense()
        chosen = K.OptimizerMap(default_optimizer=K.SGD(0.05))
        chosen[".*kernel"] = K.Adam(0.05)
        return problems.compiled(model, K.MultiOptimizer(chosen))

    return trained(place, build, *problems.regression(), evaluate=False)


@program("optimizer/sparse gradients adam")
def sparse_adam(place: Place) -> dict[str, Any]:
    return _embedding(place, lambda: K.Adam(0.05))


@program("optimizer/sparse gradients momentum")
def sparse_momentum(place: Place) -> dict[str, Any]:
    return _embedding(place, lambda: K.SGD(0.05, momentum=0.9))


@program("optimizer/sparse gradients clipnorm")
def sparse_clipnorm(place: Place) -> dict[str, Any]:
    return _embedding(place, lambda: K.SGD(0.5, clipnorm=0.05))


@program("optimizer/sparse gradients global clipnorm")
def sparse_global(place: Place) -> dict[str, Any]:
    return _embedding(place, lambda: K.Adam(0.05, global_clipnorm=0.05))


@program("optimizer/sparse gradients accumulation")
def sparse_accumulation(place: Place) -> dict[str, Any]:
    return _embedding(place, lambda: K.SGD(0.5, gradient_accumulation_steps=2))


def _embedding(place: Place, make: Callable[[], Any]) -> dict[str, Any]:
    """Trains an embedding, whose gradients are sparse, on word ids."""
    ids = problems.tokens()

    def build() -> keras.Model:
        model = keras.Sequential(
            [
                keras.Input((ids.shape[1],), dtype="int32"),
                keras.layers.Embedding(7, 4),
                keras.layers.Flatten(),
                keras.layers.Dense(1),
            ]
        )
        return problems.compiled(model, make())

    target = ids.sum(axis=1, keepdims=True).astype("float32") / 10
    return trained(place, build, ids, target, evaluate=False, predict=())


@program("optimizer/overflow on a later replica", "A01", "A02")
def overflow(place: Place) -> dict[str, Any]:
    x, y = problems.regression(8)
    x[6] = float("inf")

    def build() -> keras.Model:
        model = problems.dense()
        return problems.compiled(model, K.LossScaleOptimizer(K.SGD(0.05)))

    return trained(
        place, build, x, y, batch_size=8, epochs=1, evaluate=False, predict=()
    )


@program("optimizer/rate set by hand between fits")
def rate_by_hand(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    with place.scope():
        model = problems.compiled(optimizer=K.Adam(0.1))
    model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    model.optimizer.learning_rate = 0.01
    model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    return {f"weight/{i}": w for i, w in enumerate(model.get_weights())}
