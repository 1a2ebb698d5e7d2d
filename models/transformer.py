"""The parts that the language model and the Vision Transformer share.

A block is a pre-norm transformer block (GPT-2 and ViT are built of nothing
else):

    x -> norm -> attention -> + -> norm -> dense -> gelu -> dense -> + ->
    `-------------------------^ `------------------------------------^

`Block` is one layer, so that a model is a plain chain of layers, which can be
saved, counted and cut between any two.

Attention is written as two matrix products with the softmax between them:
TensorFlow has no fused attention kernel that Keras can reach
(`keras.ops.dot_product_attention` refuses `flash_attention=True` there), and
of the forms measured on two CPU cores (forward and backward, 16 sequences of
256 tokens, 4 heads of 32) this was the fastest: 42 ms, against 54 ms for
`dot_product_attention` and 59 ms for `keras.layers.MultiHeadAttention`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import layers, ops
from tfmulti_models import costs

PACKAGE = "tfmulti_models"
# GPT-2's and ViT's: a normal of 0.02 (for a ViT cut at two deviations).
INITIAL_STDDEV = 0.02


def normal(
    stddev: float = INITIAL_STDDEV,
) -> keras.initializers.Initializer:
    """Gives the initializer of all the weights but the norms."""
    return keras.initializers.RandomNormal(stddev=stddev)


@keras.saving.register_keras_serializable(package=PACKAGE)
class SelfAttention(layers.Layer):
    """Multi-head self-attention over [batch, tokens, width].

    Args:
        heads: Number of heads; divides the width.
        causal: Whether a token sees only itself and the tokens before it.
        dropout: Share of the attention weights that is dropped.
        output_stddev: Standard deviation of the output projection's initial
            weights.
    """

    def __init__(
        self,
        heads: int,
        *,
        causal: bool,
        dropout: float = 0.0,
        output_stddev: float = INITIAL_STDDEV,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.heads = heads
        self.causal = causal
        self.dropout = dropout
        self.output_stddev = output_stddev
        self.drop = layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        """Creates the projections: one for q, k and v, one for the output."""
        width = input_shape[-1]
        self.qkv = layers.Dense(
            3 * width,
            kernel_initializer=normal(),
            dtype=self.dtype_policy,
            name="qkv",
        )
        self.project = layers.Dense(
            width,
            kernel_initializer=normal(self.output_stddev),
            dtype=self.dtype_policy,
            name="project",
        )
        self.qkv.build(input_shape)
        self.project.build(input_shape)

    def call(self, x: Any, training: bool | None = None) -> Any:
        """Mixes the tokens; the shape stays [batch, tokens, width]."""
        tokens, width = ops.shape(x)[1], x.shape[-1]
        head_width = width // self.heads
        qkv = ops.reshape(self.qkv(x), (-1, tokens, 3, self.heads, head_width))
        # [3, batch, heads, tokens, head_width]: plain matrix products.
        q, k, v = ops.unstack(ops.transpose(qkv, (2, 0, 3, 1, 4)), 3)
        scores = ops.matmul(
            q * (head_width**-0.5), ops.transpose(k, (0, 1, 3, 2))
        )
        # The sum over many tokens wants float32, whatever the policy.
        scores = ops.cast(scores, "float32")
        if self.causal:
            scores = scores + _causal_mask(tokens)
        weights = ops.cast(ops.softmax(scores), self.compute_dtype)
        mixed = ops.matmul(self.drop(weights, training=training), v)
        mixed = ops.transpose(mixed, (0, 2, 1, 3))
        return self.project(ops.reshape(mixed, (-1, tokens, width)))

    def compute_output_shape(
        self, input_shape: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The shape stays as it is."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal layer."""
        return super().get_config() | {
            "heads": self.heads,
            "causal": self.causal,
            "dropout": self.dropout,
            "output_stddev": self.output_stddev,
        }


def _causal_mask(tokens: Any) -> Any:
    """Gives [tokens, tokens]: 0 where row >= column, else -1e9."""
    if isinstance(tokens, int):
        return np.triu(np.full((tokens, tokens), -1e9, "float32"), 1)
    places = ops.arange(tokens)
    later = places[None, :] > places[:, None]
    return ops.where(later, -1e9, 0.0)


@keras.saving.register_keras_serializable(package=PACKAGE)
class Block(layers.Layer):
    """A pre-norm transformer block over [batch, tokens, width].

    Args:
        heads: Number of attention heads.
        mlp_width: Units of the hidden dense layer.
        causal: Whether a token sees only itself and the tokens before it.
        dropout: Share dropped of the attention weights and of what each of
            the two branches adds.
        approximate_gelu: Whether gelu is the tanh approximation (GPT-2's) or
            exact (ViT's).
        branches: Residual branches in the whole model: what each adds starts
            smaller by its square root, as in GPT-2; 1 leaves it as it is.
    """

    def __init__(
        self,
        heads: int,
        mlp_width: int,
        *,
        causal: bool,
        dropout: float = 0.0,
        approximate_gelu: bool = True,
        branches: int = 1,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.heads = heads
        self.mlp_width = mlp_width
        self.causal = causal
        self.dropout = dropout
        self.approximate_gelu = approximate_gelu
        self.branches = branches

    def build(self, input_shape: tuple[Any, ...]) -> None:
        """Creates both branches."""
        dtype = self.dtype_policy
        stddev = INITIAL_STDDEV / math.sqrt(self.branches)
        self.attention = SelfAttention(
            self.heads,
            causal=self.causal,
            dropout=self.dropout,
            output_stddev=stddev,
            dtype=dtype,
            name="attention",
        )
        self.attention_norm = layers.LayerNormalization(
            epsilon=1e-5, dtype=dtype, name="attention_norm"
        )
        self.mlp_norm = layers.LayerNormalization(
            epsilon=1e-5, dtype=dtype, name="mlp_norm"
        )
        self.widen = layers.Dense(
            self.mlp_width,
            kernel_initializer=normal(),
            dtype=dtype,
            name="widen",
        )
        self.narrow = layers.Dense(
            input_shape[-1],
            kernel_initializer=normal(stddev),
            dtype=dtype,
            name="narrow",
        )
        self.drop = layers.Dropout(self.dropout, dtype=dtype)
        for part in (
            self.attention_norm,
            self.attention,
            self.mlp_norm,
            self.widen,
        ):
            part.build(input_shape)
        self.narrow.build((*input_shape[:-1], self.mlp_width))

    def call(self, x: Any, training: bool | None = None) -> Any:
        """Applies both branches; the shape stays [batch, tokens, width]."""
        added = self.attention(self.attention_norm(x), training=training)
        x = x + self.drop(added, training=training)
        hidden = ops.gelu(
            self.widen(self.mlp_norm(x)), approximate=self.approximate_gelu
        )
        return x + self.drop(self.narrow(hidden), training=training)

    def compute_output_shape(
        self, input_shape: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The shape stays as it is."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal layer."""
        return super().get_config() | {
            "heads": self.heads,
            "mlp_width": self.mlp_width,
            "causal": self.causal,
            "dropout": self.dropout,
            "approximate_gelu": self.approximate_gelu,
            "branches": self.branches,
        }


@keras.saving.register_keras_serializable(package=PACKAGE)
class Positions(layers.Layer):
    """Adds a learnt vector to each of at most `length` tokens.

    Args:
        length: Most tokens in a sequence; shorter ones use the first vectors.
    """

    def __init__(self, length: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.length = length

    def build(self, input_shape: tuple[Any, ...]) -> None:
        """Creates the table [length, width]."""
        self.table = self.add_weight(
            shape=(self.length, input_shape[-1]),
            initializer=normal(),
            name="table",
        )

    def call(self, x: Any) -> Any:
        """Adds the first rows of the table to x [batch, tokens, width]."""
        return x + self.table[: ops.shape(x)[1]]

    def compute_output_shape(
        self, input_shape: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The shape stays as it is."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal layer."""
        return super().get_config() | {"length": self.length}


def block_costs(
    tokens: int, width: int, mlp_width: int
) -> Iterator[costs.Cost]:
    """Gives the costs of one block's parts (see `costs`)."""
    yield costs.layer_norm(width) * 2
    yield costs.dense(width, 3 * width, positions=tokens)
    # Scores and mixing: each a [tokens, tokens, width] product.
    yield costs.Cost(0, 2 * 2 * tokens * tokens * width)
    yield costs.dense(width, width, positions=tokens)
    yield costs.dense(width, mlp_width, positions=tokens)
    yield costs.dense(mlp_width, width, positions=tokens)
