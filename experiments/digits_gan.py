"""A DCGAN learns to draw handwritten digits.

    python -m tfmulti.run --experiment digits_gan

One sees samples.png: 64 digits that nobody wrote. A classifier of real digits
is at least 90 % sure of most of 1000 such images, and finds all ten classes.
"""

from __future__ import annotations

from tfmulti.config import Experiment

EXPERIMENT = Experiment(
    name="digits_gan",
    summary="A DCGAN draws 8x8 digits that a classifier is sure of.",
    task="gan",
    model="dcgan",
    model_config={"width": 64, "levels": 2},
    data="digits",
    epochs=80,
    global_batch_size=64,
    learning_rate=5e-4,
)
