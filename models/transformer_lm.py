"""A decoder-only transformer language model of GPT-2's shape, in any size.

    tokens -> embedding + position -> block x layers -> norm -> logits

The position of the norms, the tanh gelu, the learnt positions, the smaller
start of the residual branches and the tied output are GPT-2's (Radford et
al., "Language models are unsupervised multitask learners", 2019).

keras_hub has a `GPT2Backbone`. It is not used here, because the default
experiments must run without that extra, and because it differs: it wants a
padding mask beside the tokens, leaves out the smaller start of the residual
branches, and ends before the logits. Its presets' sizes agree with ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import layers, ops
from tfmulti_models import checks, costs, transformer

# name: (layers, width, heads)
GPT2 = {
    "gpt2": (12, 768, 12),
    "gpt2_medium": (24, 1024, 16),
    "gpt2_large": (36, 1280, 20),
    "gpt2_xl": (48, 1600, 25),
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A decoder-only language model.

    Attributes:
        vocabulary_size: Different tokens; 256 for bytes.
        context_length: Most tokens in a sequence.
        layers: Transformer blocks.
        width: Features of a token; a multiple of `heads`.
        heads: Attention heads in a block.
        mlp_width: Hidden units in a block; None: four times the width.
        dropout: Share dropped of embeddings, attention weights and branches.
        tied: Whether the output uses the embedding's weights.
    """

    vocabulary_size: int = 256
    context_length: int = 128
    layers: int = 4
    width: int = 128
    heads: int = 4
    mlp_width: int | None = None
    dropout: float = 0.0
    tied: bool = True

    def __post_init__(self) -> None:
        checks.at_least(
            1,
            vocabulary_size=self.vocabulary_size,
            context_length=self.context_length,
            layers=self.layers,
            width=self.width,
            heads=self.heads,
        )
        checks.divides("heads", self.heads, width=self.width)
        if self.mlp_width is not None:
            checks.at_least(1, mlp_width=self.mlp_width)
        checks.rate(dropout=self.dropout)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Config:
        """Gives the configuration of a published GPT-2.

        Args:
            name: "gpt2", "gpt2_medium", "gpt2_large" or "gpt2_xl": 124, 355,
                774 and 1558 million parameters.
            **changes: Values for fields that shall differ.
        """
        checks.one_of(GPT2, name=name)
        depth, width, heads = GPT2[name]
        published: dict[str, Any] = {
            "vocabulary_size": 50257,
            "context_length": 1024,
            "layers": depth,
            "width": width,
            "heads": heads,
            "dropout": 0.1,
        }
        return cls(**published | changes)


@keras.saving.register_keras_serializable(package=transformer.PACKAGE)
class TokenEmbedding(layers.Layer):
    """A vector for each token, and in reverse a logit for each token.

    `keras.layers.ReversibleEmbedding` does the same, but in mixed precision
    its logits depend on the policy of the model around it: under a float32
    model its kernel is rounded to the layer's dtype first, so that a model
    that is saved and loaded gives other logits (Keras 3.15).

    Args:
        vocabulary_size: Different tokens.
        width: Features of a vector.
    """

    def __init__(self, vocabulary_size: int, width: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.width = width

    def build(self, input_shape: tuple[Any, ...]) -> None:
        """Creates the table [vocabulary_size, width]."""
        self.table = self.add_weight(
            shape=(self.vocabulary_size, self.width),
            initializer=transformer.normal(),
            autocast=False,
            name="table",
        )

    def call(self, inputs: Any, reverse: bool = False) -> Any:
        """Gives vectors of tokens [batch, tokens], or logits of vectors.

        Args:
            inputs: Integer tokens [batch, tokens]; in reverse, vectors
                [batch, tokens, width].
            reverse: Whether logits are wanted.

        Returns:
            Vectors [batch, tokens, width] in the compute dtype, or logits
            [batch, tokens, vocabulary_size] in float32.
        """
        if not reverse:
            vectors = ops.take(self.table, inputs, axis=0)
            return ops.cast(vectors, self.compute_dtype)
        vectors = ops.cast(inputs, "float32")
        return ops.matmul(vectors, ops.transpose(self.table))

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal layer."""
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "width": self.width,
        }


def build(config: Config) -> keras.Model:
    """Builds the language model.

    Returns:
        A model from int32 tokens [batch, tokens], at most `context_length` of
        them, to float32 logits [batch, tokens, vocabulary_size] for the token
        that follows each.
    """
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    embedding = TokenEmbedding(
        config.vocabulary_size, config.width, name="embedding"
    )
    x = embedding(tokens)
    x = transformer.Positions(config.context_length, name="positions")(x)
    x = layers.Dropout(config.dropout, name="dropout")(x)
    for index in range(config.layers):
        x = transformer.Block(
            config.heads,
            _mlp_width(config),
            causal=True,
            dropout=config.dropout,
            branches=2 * config.layers,
            name=f"block_{index}",
        )(x)
    x = layers.LayerNormalization(epsilon=1e-5, name="norm")(x)
    if config.tied:
        logits = embedding(x, reverse=True)
    else:
        logits = layers.Dense(
            config.vocabulary_size,
            use_bias=False,
            kernel_initializer=transformer.normal(),
            dtype="float32",
            name="logits",
        )(x)
    return keras.Model(tokens, logits, name="transformer_lm")


def sample(
    model: keras.Model,
    prompt: np.ndarray,
    length: int,
    *,
    context_length: int,
    temperature: float = 1.0,
    seed: int = 0,
) -> np.ndarray:
    """Continues a prompt, drawing one token after the other.

    Args:
        model: What `build` gave.
        prompt: Integer tokens [tokens], at least one.
        length: Tokens to add.
        context_length: The model's; each token is drawn from what the last
            so many tokens foretell.
        temperature: Below 1 prefers likely tokens; above 1, unlikely ones.
        seed: Equal seeds give equal continuations.

    Returns:
        The prompt and its continuation, [tokens + length].
    """
    draw = np.random.default_rng(seed)
    tokens = [int(token) for token in prompt]
    for _ in range(length):
        seen = tokens[-context_length:]
        # Zeros to the right keep one shape; no earlier token sees them.
        window = np.zeros((1, context_length), "int32")
        window[0, : len(seen)] = seen
        logits = model.predict_on_batch(window)[0, len(seen) - 1]
        scaled = (logits - logits.max()).astype("float64") / temperature
        odds = np.exp(scaled)
        tokens.append(int(draw.choice(len(odds), p=odds / odds.sum())))
    return np.asarray(tokens, "int32")


def parameter_count(config: Config) -> int:
    """Counts all weights."""
    return costs.total(_costs(config)).parameters


def flops_per_example(config: Config) -> int:
    """Counts the FLOPs of a full sequence's forward pass (see `costs`)."""
    return costs.total(_costs(config)).flops


def _mlp_width(config: Config) -> int:
    return config.mlp_width or 4 * config.width


def _costs(config: Config) -> Iterator[costs.Cost]:
    tokens, width = config.context_length, config.width
    table = config.vocabulary_size * width
    yield costs.Cost(table + tokens * width)
    block = transformer.block_costs(tokens, width, _mlp_width(config))
    yield costs.total(block) * config.layers
    yield costs.layer_norm(width)
    yield costs.Cost(0 if config.tied else table, 2 * tokens * table)
