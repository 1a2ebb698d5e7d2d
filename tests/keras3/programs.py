"""Small training programs, run on one device or on a strategy's replicas."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np


def data(rows: int, columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Gives `rows` random examples, x [rows, columns] and y [rows, 1]."""
    random = np.random.RandomState(rows)
    x = random.randn(rows, columns).astype("float32")
    return x, random.randn(rows, 1).astype("float32")


def scope_of(strategy: Any) -> Any:
    """Gives the scope of a strategy; None means one plain device."""
    return contextlib.nullcontext() if strategy is None else strategy.scope()


def mlp(
    strategy: Any,
    optimizer: Callable[[], Any],
    *,
    loss: Any = "mse",
    metrics: Any = ("mae",),
    layers: Callable[[], list[Any]] = list,
    **compile_args: Any,
) -> Any:
    """Builds and compiles a two-layer network with seeded weights."""
    import keras

    with scope_of(strategy):
        model = keras.Sequential(
            [
                keras.Input((4,)),
                keras.layers.Dense(
                    5,
                    "tanh",
                    kernel_initializer=keras.initializers.GlorotUniform(1),
                ),
                *layers(),
                keras.layers.Dense(
                    1,
                    kernel_initializer=keras.initializers.GlorotUniform(2),
                ),
            ]
        )
        model.compile(
            optimizer(), loss, metrics=list(metrics), **compile_args
        )
    return model


def fitted(
    strategy: Any,
    optimizer: Callable[[], Any],
    *,
    rows: int = 23,
    batch_size: int = 8,
    **build: Any,
) -> dict[str, np.ndarray]:
    """Trains `mlp` for two epochs; gives weights, history, predictions."""
    x, y = data(rows)
    model = mlp(strategy, optimizer, **build)
    history = model.fit(
        x,
        y,
        batch_size=batch_size,
        epochs=2,
        shuffle=False,
        verbose=0,
        validation_data=(x[:9], y[:9]),
    ).history
    found = {f"weight {i}": w for i, w in enumerate(model.get_weights())}
    found |= {f"history {k}": np.array(v) for k, v in history.items()}
    found["prediction"] = model.predict(x, batch_size=batch_size, verbose=0)
    found["iterations"] = np.array(int(model.optimizer.iterations))
    return found


def assert_same(
    got: dict[str, np.ndarray],
    wanted: dict[str, np.ndarray],
    tolerance: float = 1e-5,
) -> None:
    """Compares results up to `tolerance`, relative to each array's scale."""
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        scale = max(float(np.abs(array).max(initial=0)), 1e-3)
        assert got[name].shape == array.shape, name
        np.testing.assert_allclose(
            got[name], array, rtol=0, atol=tolerance * scale, err_msg=name
        )
