"""The two networks of an adversarial model, sized from the image.

The image is halved `levels` times, and at every halving the channels double,
so that the generator reads as a pyramid from `base` to the image and the
discriminator as the same pyramid upside down:

    latents -> 4x4 -> 8x8 -> 16x16 -> 32x32 -> 64x64         generator
     score  <- 4x4 <- 8x8 <- 16x16 <- 32x32 <- 64x64     discriminator

That is DCGAN's recipe (Radford et al., arxiv.org/abs/1511.06434): strided
convolutions, no pooling, batch normalisation, tanh output, leaky relu in the
discriminator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import layers
from tfmulti_models import checks, costs

KERNEL = 4
NORMS = ("batch", "layer", "none")


@dataclass(frozen=True, kw_only=True)
class AdversarialConfig:
    """A generator and the discriminator it is trained against.

    Attributes:
        image_shape: Height, width and channels of an image.
        pixel_range: Lowest and highest pixel value, of the data as of what
            `generate` gives; inside, pixels lie in [-1, 1].
        latent_size: Numbers that one image is made from.
        width: Channels after the first halving; they double with each.
        levels: Halvings; None: as many as leave at least four pixels.
        discriminator_norm: "batch", "layer" or "none".
        discriminator_dropout: Share dropped after each of its convolutions.
        num_classes: Makes both networks depend on a class label; None leaves
            labels out.
        synchronized: Whether batch statistics are those of all replicas.
    """

    image_shape: tuple[int, int, int] = (64, 64, 3)
    pixel_range: tuple[float, float] = (0.0, 1.0)
    latent_size: int = 100
    width: int = 64
    levels: int | None = None
    discriminator_norm: str = "batch"
    discriminator_dropout: float = 0.0
    num_classes: int | None = None
    synchronized: bool = False

    def __post_init__(self) -> None:
        shape = checks.image_shape(self.image_shape)
        object.__setattr__(self, "image_shape", shape)
        object.__setattr__(self, "pixel_range", tuple(self.pixel_range))
        low, high = self.pixel_range
        if not low < high:
            checks.refuse(
                "pixel_range",
                self.pixel_range,
                "the lowest and the highest pixel value",
                "Give, for example, (0.0, 1.0).",
            )
        checks.at_least(1, latent_size=self.latent_size, width=self.width)
        checks.one_of(NORMS, discriminator_norm=self.discriminator_norm)
        checks.rate(discriminator_dropout=self.discriminator_dropout)
        if self.num_classes is not None:
            checks.at_least(2, num_classes=self.num_classes)
        if self.levels is None:
            object.__setattr__(self, "levels", _most_halvings(shape[:2]))
        checks.at_least(1, levels=self.levels)
        halved = 2**self.halvings
        checks.divides(
            f"2**levels = {halved}, with levels",
            halved,
            height=shape[0],
            width=shape[1],
        )

    @property
    def halvings(self) -> int:
        """`levels`, which `__post_init__` has made a number."""
        assert self.levels is not None
        return self.levels

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels after each halving, from the image inwards."""
        return tuple(self.width * 2**i for i in range(self.halvings))

    @property
    def base(self) -> tuple[int, int, int]:
        """Height, width and channels where the pyramid is narrowest."""
        height, width, _ = self.image_shape
        scale = 2**self.halvings
        return height // scale, width // scale, self.channels[-1]

    @property
    def label_size(self) -> int:
        """Features that a class label adds to the latents."""
        return self.num_classes or 0


def _most_halvings(sides: tuple[int, ...]) -> int:
    halvings = 0
    while all(side % 2 == 0 and side >= 8 for side in sides):
        sides = tuple(side // 2 for side in sides)
        halvings += 1
    return halvings


def build_generator(
    config: AdversarialConfig, dtype: Any = None
) -> keras.Model:
    """Builds the network from latents (and labels) to pixels in [-1, 1]."""
    latents = keras.Input((config.latent_size,), name="latents")
    inputs, x = [latents], latents
    if config.num_classes:
        label = keras.Input((config.num_classes,), name="label")
        inputs.append(label)
        x = layers.Concatenate(dtype=dtype)([latents, label])
    x = layers.Dense(
        int(np.prod(config.base)),
        use_bias=False,
        kernel_initializer=_normal(),
        dtype=dtype,
    )(x)
    x = layers.Reshape(config.base, dtype=dtype)(x)
    x = _generator_norm(x, config, dtype)
    for channels in reversed(config.channels[:-1]):
        x = _widen(x, channels, dtype)
        x = _generator_norm(x, config, dtype)
    # Float32 from here on: these are the model's output.
    x = _widen(x, config.image_shape[2], "float32", use_bias=True)
    x = layers.Activation("tanh", dtype="float32", name="pixels")(x)
    return _model(inputs, x, "generator")


def _widen(x: Any, channels: int, dtype: Any, use_bias: bool = False) -> Any:
    return layers.Conv2DTranspose(
        channels,
        KERNEL,
        strides=2,
        padding="same",
        use_bias=use_bias,
        kernel_initializer=_normal(),
        dtype=dtype,
    )(x)


def _generator_norm(x: Any, config: AdversarialConfig, dtype: Any) -> Any:
    x = layers.BatchNormalization(
        momentum=0.9, synchronized=config.synchronized, dtype=dtype
    )(x)
    return layers.ReLU(dtype=dtype)(x)


def build_discriminator(
    config: AdversarialConfig, dtype: Any = None
) -> keras.Model:
    """Builds the network from pixels in [-1, 1] (and labels) to a score.

    The score is [batch], float32. A label adds the product of the features
    with a vector of its own (Miyato and Koyama, arxiv.org/abs/1802.05637).
    """
    x = image = keras.Input(config.image_shape, name="image")
    inputs = [image]
    for level, channels in enumerate(config.channels):
        norm = config.discriminator_norm if level else "none"
        x = _narrow(x, channels, norm, config, dtype)
    x = layers.Flatten(dtype=dtype)(x)
    score = layers.Dense(
        1, kernel_initializer=_normal(), dtype="float32", name="score"
    )(x)
    if config.num_classes:
        label = keras.Input((config.num_classes,), name="label")
        inputs.append(label)
        vector = layers.Dense(
            x.shape[-1], use_bias=False, dtype="float32", name="label_vector"
        )(label)
        score = score + layers.Dot(1, dtype="float32")([x, vector])
    score = layers.Reshape((), dtype="float32", name="scores")(score)
    return _model(inputs, score, "discriminator")


def _narrow(
    x: Any, channels: int, norm: str, config: AdversarialConfig, dtype: Any
) -> Any:
    x = layers.Conv2D(
        channels,
        KERNEL,
        strides=2,
        padding="same",
        use_bias=norm == "none",
        kernel_initializer=_normal(),
        dtype=dtype,
    )(x)
    if norm == "batch":
        x = layers.BatchNormalization(
            momentum=0.9, synchronized=config.synchronized, dtype=dtype
        )(x)
    elif norm == "layer":
        # Over the whole image, as WGAN-GP has it, not each pixel alone.
        x = layers.LayerNormalization(axis=(1, 2, 3), dtype=dtype)(x)
    x = layers.LeakyReLU(0.2, dtype=dtype)(x)
    return layers.Dropout(config.discriminator_dropout, dtype=dtype)(x)


def _model(inputs: list[Any], output: Any, name: str) -> keras.Model:
    return keras.Model(inputs if inputs[1:] else inputs[0], output, name=name)


def _normal() -> keras.initializers.Initializer:
    return keras.initializers.RandomNormal(stddev=0.02)


def network_costs(config: AdversarialConfig) -> Iterator[costs.Cost]:
    """Gives the costs of both networks' parts (see `costs`)."""
    yield from _generator_costs(config)
    yield from _discriminator_costs(config)


def _generator_costs(config: AdversarialConfig) -> Iterator[costs.Cost]:
    height, width, channels = config.base
    inputs = config.latent_size + config.label_size
    yield costs.dense(inputs, height * width * channels, bias=False)
    yield costs.batch_norm(channels)
    for outputs in reversed(config.channels[:-1]):
        yield costs.conv(height * width, KERNEL, channels, outputs, bias=False)
        yield costs.batch_norm(outputs)
        height, width, channels = 2 * height, 2 * width, outputs
    yield costs.conv(height * width, KERNEL, channels, config.image_shape[2])


def _discriminator_costs(config: AdversarialConfig) -> Iterator[costs.Cost]:
    height, width, channels = config.image_shape
    for level, outputs in enumerate(config.channels):
        norm = config.discriminator_norm if level else "none"
        height, width = height // 2, width // 2
        yield costs.conv(
            height * width, KERNEL, channels, outputs, bias=norm == "none"
        )
        if norm == "batch":
            yield costs.batch_norm(outputs)
        elif norm == "layer":
            yield costs.layer_norm(height * width * outputs)
        channels = outputs
    features = height * width * channels
    yield costs.dense(features, 1)
    if config.num_classes:
        yield costs.dense(config.num_classes, features, bias=False)
        yield costs.Cost(0, 2 * features)
