"""Language modelling: which token comes next.

Models give logits [batch, time, vocabulary]; the loss is the mean cross
entropy in nats for each token. Divided by ln 2 it is bits, and where a token
is a byte, bits per byte: what one byte of text costs when the model compresses
it (8 for a model that knows nothing, about 2 for gzip on source code).

The trained model shows a text: it is given the beginning of a held-out one
and writes on, byte by byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from tfmulti.config import Experiment
from tfmulti.data import DataSplits
from tfmulti.launch.job import Job
from tfmulti.train.classification import held_out
from tfmulti.train.optimizers import make_optimizer
from tfmulti.train.run_dir import SAMPLE_TEXT
from tfmulti.train.task import Shown

BYTES = 256  # vocabulary of a model whose tokens are bytes
PROMPT_SHARE = 4  # the prompt is a quarter of the context
CONTINUATION_TOKENS = 256
TEMPERATURE = 0.7
SEED = 0


class LanguageModel:
    """See the module and `tfmulti.train.task.Task`."""

    validates = True

    def compile(
        self, model: keras.Model, experiment: Experiment, total_steps: int
    ) -> None:
        """Compiles with cross entropy over all positions."""
        self._unit = (
            "bits_per_byte"
            if model.output_shape[-1] == BYTES
            else "bits_per_token"
        )
        model.compile(
            optimizer=make_optimizer(experiment, total_steps),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )

    def terms(self, logs: Mapping[str, float]) -> dict[str, float]:
        """Adds bits to each loss in nats."""
        bits = {
            name.replace("loss", self._unit): value / math.log(2)
            for name, value in logs.items()
            if name in ("loss", "val_loss")
        }
        return dict(logs) | bits

    def result(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Gives the held-out loss and bits."""
        return held_out(metrics)

    def show(
        self, model: keras.Model, job: Job, splits: DataSplits
    ) -> Shown:
        """Writes on from the beginning of a held-out text."""
        if self._unit != "bits_per_byte":
            return Shown()
        source = splits.validation or splits.train
        tokens = np.asarray(source.fetch(tf.constant([0], tf.int64))[0])[0]
        prompt = tokens[: max(1, len(tokens) // PROMPT_SHARE)]
        written = continue_text(model, prompt, context=len(tokens))
        text = (
            f"[prompt, held out]\n{_decode(prompt)}\n"
            f"[the model goes on, temperature {TEMPERATURE}]\n"
            f"{_decode(written)}\n"
        )
        Path(job.run_dir, SAMPLE_TEXT).write_text(text, encoding="utf-8")
        return Shown(files={"sample": SAMPLE_TEXT})


def continue_text(
    model: keras.Model,
    prompt: np.ndarray,
    *,
    context: int,
    tokens: int = CONTINUATION_TOKENS,
    temperature: float = TEMPERATURE,
    seed: int = SEED,
) -> np.ndarray:
    """Draws tokens one after the other, each from the model's distribution.

    Args:
        model: Gives logits [1, context, vocabulary] for int32 [1, context].
        prompt: Tokens to start from, at least one.
        context: Tokens that the model sees; older ones slide out.
        tokens: How many to draw.
        temperature: Below 1 prefers likely tokens.
        seed: Of the draw.

    Returns:
        The drawn tokens, int32 [tokens].
    """
    random = np.random.default_rng(seed)
    written = list(prompt)
    for _ in range(tokens):
        window = written[-context:]
        padded = np.zeros((1, context), np.int32)
        padded[0, : len(window)] = window
        logits = np.asarray(model.predict_on_batch(padded))
        scaled = logits[0, len(window) - 1].astype(np.float64) / temperature
        shares = np.exp(scaled - scaled.max())
        written.append(
            int(random.choice(len(shares), p=shares / shares.sum()))
        )
    return np.array(written[len(prompt) :], np.int32)


def _decode(tokens: np.ndarray) -> str:
    return bytes(int(t) for t in tokens).decode("utf-8", errors="replace")
