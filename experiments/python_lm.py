"""A byte-level GPT learns to write Python from the standard library.

    python -m tfmulti.run --experiment python_lm

Every machine with Python has the text: its own standard library, held-out
files kept apart. One sees the bits per byte of unseen files fall below 3 (8
is knowing nothing) within three minutes on two CPU cores, and sample.txt: a
held-out beginning, and how the model goes on.
"""

from __future__ import annotations

from tfmulti.config import Experiment

EXPERIMENT = Experiment(
    name="python_lm",
    summary="A byte-level GPT on Python's own source: under 3 bits per byte.",
    task="language_model",
    model="transformer_lm",
    model_config={
        "context_length": 64,
        "layers": 2,
        "width": 96,
        "heads": 3,
    },
    data="python_source",
    epochs=8,
    steps_per_epoch=100,
    global_batch_size=32,
    learning_rate=5e-3,
    optimizer="adamw",
    weight_decay=0.1,
    warmup_steps=50,
    global_clipnorm=1.0,
    validation_examples=512,
)
