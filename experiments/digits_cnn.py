"""A small convnet reads handwritten digits; the default experiment.

    python -m tfmulti.run

One sees the held-out accuracy pass 97 % within a minute on two CPU cores, on
two replicas that end with the same weights.
"""

from __future__ import annotations

from tfmulti.config import Experiment

EXPERIMENT = Experiment(
    name="digits_cnn",
    summary="A small convnet reads 8x8 handwritten digits: over 97 % right.",
    task="classification",
    model="convnet",
    data="digits",
    epochs=15,
    global_batch_size=64,
    learning_rate=2e-3,
    warmup_steps=30,
)
