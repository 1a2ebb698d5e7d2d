"""Small fixed data and models that many programs share."""

from __future__ import annotations

import keras
import numpy as np

L = keras.layers


def regression(
    rows: int = 10, features: int = 3, targets: int = 1, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gives x [rows, features] and a noisy linear y [rows, targets]."""
    draw = np.random.RandomState(seed)
    x = draw.randn(rows, features)
    y = x @ draw.randn(features, targets) + 0.3 * draw.randn(rows, targets)
    return x.astype("float32"), y.astype("float32")


def classes(
    rows: int = 10, features: int = 3, count: int = 3, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Gives x [rows, features] and labels [rows] in 0..count-1."""
    draw = np.random.RandomState(seed)
    x = draw.randn(rows, features).astype("float32")
    return x, np.argmax(x @ draw.randn(features, count), axis=1)


def one_hot(labels: np.ndarray, count: int = 3) -> np.ndarray:
    """Gives labels as rows of zeros and a one, float32."""
    return np.eye(count, dtype="float32")[labels]


def weights(rows: int = 10, seed: int = 2) -> np.ndarray:
    """Gives uneven sample weights with a zero among them, float32."""
    drawn = np.random.RandomState(seed).uniform(0.2, 3.0, rows)
    drawn[1] = 0.0
    return drawn.astype("float32")


def tokens(
    rows: int = 10, length: int = 5, words: int = 7, seed: int = 3
) -> np.ndarray:
    """Gives ids [rows, length]; zeros pad rows at unequal lengths."""
    draw = np.random.RandomState(seed)
    ids = draw.randint(1, words, (rows, length))
    for row, used in enumerate(draw.randint(1, length + 1, rows)):
        ids[row, used:] = 0
    return ids.astype("int32")


def images(rows: int = 10, size: int = 6, seed: int = 4) -> np.ndarray:
    """Gives images [rows, size, size, 2], float32."""
    draw = np.random.RandomState(seed)
    return draw.randn(rows, size, size, 2).astype("float32")


def dense(
    outputs: int = 1, features: int = 3, activation: str | None = None
) -> keras.Model:
    """Gives a model of two dense layers."""
    return keras.Sequential(
        [
            keras.Input((features,)),
            L.Dense(4, "tanh"),
            L.Dense(outputs, activation),
        ]
    )


def compiled(
    model: keras.Model | None = None,
    optimizer: object = None,
    loss: object = "mse",
    **options: object,
) -> keras.Model:
    """Compiles a model, by default `dense()` with plain descent on "mse"."""
    model = dense() if model is None else model
    if optimizer is None:
        optimizer = keras.optimizers.SGD(0.05)
    model.compile(optimizer, loss, **options)
    return model
