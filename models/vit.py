"""The Vision Transformer: an image as a short sequence of patches.

    image -> patches -> dense -> (+ class token) -> + position -> block x depth
          -> norm -> class token or mean -> logits

Dosovitskiy et al., "An image is worth 16x16 words" (arxiv.org/abs/2010.11929),
whose sizes are `Config.preset`. The mean over patches in place of the class
token is Beyer et al., "Better plain ViT baselines" (arxiv.org/abs/2205.01580).
keras_hub's `ViTBackbone` is not used: the default experiments must run without
that extra, and it has no mean pooling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
from keras import layers, ops
from tfmulti_models import checks, costs, transformer

# size: (depth, width, heads); arxiv.org/abs/2010.11929, table 1, and
# arxiv.org/abs/2012.12877, table 1, for tiny and small.
SIZES = {
    "tiny": (12, 192, 3),
    "small": (12, 384, 6),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
    "huge": (32, 1280, 16),
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A Vision Transformer.

    Attributes:
        image_shape: Height, width and channels of an image.
        num_classes: Classes to tell apart.
        patch: Side of a patch in pixels; divides height and width.
        depth: Transformer blocks.
        width: Features of a patch; a multiple of `heads`.
        heads: Attention heads in a block.
        mlp_width: Hidden units in a block; None: four times the width.
        dropout: Share dropped of embeddings, attention weights and branches.
        pool: "token" reads the result off a class token, "mean" off the mean
            over patches.
    """

    image_shape: tuple[int, int, int] = (8, 8, 1)
    num_classes: int = 10
    patch: int = 2
    depth: int = 4
    width: int = 64
    heads: int = 4
    mlp_width: int | None = None
    dropout: float = 0.1
    pool: str = "mean"

    def __post_init__(self) -> None:
        shape = checks.image_shape(self.image_shape)
        object.__setattr__(self, "image_shape", shape)
        checks.at_least(2, num_classes=self.num_classes)
        checks.at_least(
            1,
            patch=self.patch,
            depth=self.depth,
            width=self.width,
            heads=self.heads,
        )
        checks.divides("heads", self.heads, width=self.width)
        checks.divides("patch", self.patch, height=shape[0], width=shape[1])
        if self.mlp_width is not None:
            checks.at_least(1, mlp_width=self.mlp_width)
        checks.rate(dropout=self.dropout)
        checks.one_of(("token", "mean"), pool=self.pool)

    @classmethod
    def preset(cls, size: str, patch: int = 16, **changes: Any) -> Config:
        """Gives a published size: `preset("base", 16)` is ViT-B/16.

        Args:
            size: "tiny", "small", "base", "large" or "huge".
            patch: Side of a patch in pixels.
            **changes: Values for fields that shall differ; by default images
                are 224x224x3, with 1000 classes and a class token.
        """
        checks.one_of(SIZES, size=size)
        depth, width, heads = SIZES[size]
        published: dict[str, Any] = {
            "image_shape": (224, 224, 3),
            "num_classes": 1000,
            "patch": patch,
            "depth": depth,
            "width": width,
            "heads": heads,
            "pool": "token",
        }
        return cls(**published | changes)


@keras.saving.register_keras_serializable(package=transformer.PACKAGE)
class ClassToken(layers.Layer):
    """Puts one learnt token before the tokens [batch, tokens, width]."""

    def build(self, input_shape: tuple[Any, ...]) -> None:
        """Creates the token [1, 1, width]."""
        self.token = self.add_weight(
            shape=(1, 1, input_shape[-1]), initializer="zeros", name="token"
        )

    def call(self, x: Any) -> Any:
        """Gives [batch, 1 + tokens, width]."""
        shape = (ops.shape(x)[0], 1, x.shape[-1])
        token = ops.broadcast_to(ops.cast(self.token, x.dtype), shape)
        return ops.concatenate([token, x], axis=1)

    def compute_output_shape(
        self, input_shape: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """One token more."""
        batch, tokens, width = input_shape
        return batch, None if tokens is None else tokens + 1, width


def build(config: Config) -> keras.Model:
    """Builds the classifier.

    Returns:
        A model from images [batch, height, width, channels] to float32 logits
        [batch, num_classes].
    """
    inputs = keras.Input(config.image_shape, name="image")
    x = layers.Conv2D(
        config.width, config.patch, strides=config.patch, name="patches"
    )(inputs)
    x = layers.Reshape((_patches(config), config.width))(x)
    if config.pool == "token":
        x = ClassToken(name="class_token")(x)
    x = transformer.Positions(_tokens(config), name="positions")(x)
    x = layers.Dropout(config.dropout, name="dropout")(x)
    for index in range(config.depth):
        x = transformer.Block(
            config.heads,
            _mlp_width(config),
            causal=False,
            dropout=config.dropout,
            approximate_gelu=False,
            name=f"block_{index}",
        )(x)
    x = layers.LayerNormalization(epsilon=1e-6, name="norm")(x)
    if config.pool == "token":
        x = x[:, 0]
    else:
        x = layers.GlobalAveragePooling1D(name="mean")(x)
    logits = layers.Dense(config.num_classes, dtype="float32", name="logits")
    return keras.Model(inputs, logits(x), name="vit")


def parameter_count(config: Config) -> int:
    """Counts all weights."""
    return costs.total(_costs(config)).parameters


def flops_per_example(config: Config) -> int:
    """Counts the FLOPs of one image's forward pass (see `costs`)."""
    return costs.total(_costs(config)).flops


def _patches(config: Config) -> int:
    height, width, _ = config.image_shape
    return (height // config.patch) * (width // config.patch)


def _tokens(config: Config) -> int:
    return _patches(config) + (config.pool == "token")


def _mlp_width(config: Config) -> int:
    return config.mlp_width or 4 * config.width


def _costs(config: Config) -> Iterator[costs.Cost]:
    width, tokens = config.width, _tokens(config)
    channels = config.image_shape[2]
    yield costs.conv(_patches(config), config.patch, channels, width)
    yield costs.Cost(tokens * width + width * (config.pool == "token"))
    block = transformer.block_costs(tokens, width, _mlp_width(config))
    yield costs.total(block) * config.depth
    yield costs.layer_norm(width)
    yield costs.dense(width, config.num_classes)
