"""GPT-2 small, on the bytes of your own text.

    python -m tfmulti.run --experiment gpt2_text --strategy mirrored \\
        --data "text:corpus/**/*.txt" --precision mixed_bfloat16

12 layers of width 768, as in Radford et al. 2019, with bytes for tokens, so
that no tokenizer has to be trained and the result, bits per byte, can be
compared between texts. One sees it fall below 2 on plain English, and
sample.txt. TFRecord files with a `text` feature: --data tfrecord:PATTERN.
"""

from __future__ import annotations

from tfmulti.config import YOURS, Experiment

EXPERIMENT = Experiment(
    name="gpt2_text",
    summary="GPT-2 small on the bytes of your text or TFRecord files.",
    task="language_model",
    model="transformer_lm",
    model_config={
        "context_length": 1024,
        "layers": 12,
        "width": 768,
        "heads": 12,
        "dropout": 0.1,
    },
    data=YOURS,
    epochs=10,
    steps_per_epoch=2000,
    global_batch_size=64,
    learning_rate=6e-4,
    optimizer="adamw",
    weight_decay=0.1,
    warmup_steps=1000,
    global_clipnorm=1.0,
    validation_examples=2048,
)
