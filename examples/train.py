"""A Keras script that knows nothing of tfmulti.

It fits a small network to a noisy function of its own making.
"""

import argparse

import keras
import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (4000, 2)).astype("float32")
    y = np.sin(x[:, :1]) * x[:, 1:] + rng.normal(0, 0.05, (4000, 1))

    model = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(64, activation="gelu"),
            keras.layers.Dense(64, activation="gelu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(3e-3), "mse", metrics=["mae"])
    model.fit(
        x,
        y,
        batch_size=128,
        epochs=args.epochs,
        validation_split=0.1,
        verbose=2,
    )


if __name__ == "__main__":
    main()
