"""A small convolutional classifier, for images of 8x8 pixels and up.

    image -> [conv, norm, relu] x depth, pool -> ... -> dense -> logits
             `------------ one stage -----------'

It is the default experiment's model: small enough for two CPU cores, and with
batch normalisation and dropout, the two layers that go wrong most easily when
a batch is spread over replicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import keras
from keras import layers
from tfmulti_models import checks, costs


@dataclass(frozen=True, kw_only=True)
class Config:
    """A convolutional classifier.

    Attributes:
        image_shape: Height, width and channels of an image.
        num_classes: Classes to tell apart.
        filters: Channels of each stage; every stage but the last ends with a
            pooling that halves the image.
        depth: Convolutions in a stage.
        kernel: Side of the kernels, in pixels.
        dense: Units of the hidden dense layer; 0 leaves it out.
        dropout: Share of the dense layer's inputs that is dropped.
        batch_norm: Whether batch normalisation follows each convolution.
        synchronized: Whether batch statistics are those of all replicas.
    """

    image_shape: tuple[int, int, int] = (8, 8, 1)
    num_classes: int = 10
    filters: tuple[int, ...] = (32, 64)
    depth: int = 2
    kernel: int = 3
    dense: int = 128
    dropout: float = 0.3
    batch_norm: bool = True
    synchronized: bool = False

    def __post_init__(self) -> None:
        shape = checks.image_shape(self.image_shape)
        object.__setattr__(self, "image_shape", shape)
        object.__setattr__(self, "filters", tuple(self.filters))
        checks.at_least(1, depth=self.depth, kernel=self.kernel)
        checks.at_least(2, num_classes=self.num_classes)
        checks.at_least(0, dense=self.dense)
        checks.rate(dropout=self.dropout)
        for filters in self.filters:
            checks.at_least(1, filters=filters)
        most = min(shape[:2]).bit_length()
        if not 1 <= len(self.filters) <= most:
            checks.refuse(
                "filters",
                self.filters,
                f"1 to {most} stages for images of {shape[0]}x{shape[1]}",
                "Each stage but the last halves the image: use fewer.",
            )


def build(config: Config) -> keras.Model:
    """Builds the classifier.

    Returns:
        A model from images [batch, height, width, channels] to float32 logits
        [batch, num_classes].
    """
    x = inputs = keras.Input(config.image_shape, name="image")
    for stage, filters in enumerate(config.filters):
        if stage:
            x = layers.MaxPooling2D(2)(x)
        for _ in range(config.depth):
            x = _conv(x, filters, config)
    x = layers.Dropout(config.dropout)(layers.Flatten()(x))
    if config.dense:
        x = layers.Dense(config.dense, activation="relu")(x)
        x = layers.Dropout(config.dropout)(x)
    logits = layers.Dense(config.num_classes, dtype="float32", name="logits")
    return keras.Model(inputs, logits(x), name="convnet")


def _conv(x, filters: int, config: Config):
    x = layers.Conv2D(
        filters,
        config.kernel,
        padding="same",
        use_bias=not config.batch_norm,
        kernel_initializer="he_normal",
    )(x)
    if config.batch_norm:
        x = layers.BatchNormalization(
            momentum=0.9, synchronized=config.synchronized
        )(x)
    return layers.ReLU()(x)


def parameter_count(config: Config) -> int:
    """Counts all weights, moving statistics included."""
    return costs.total(_costs(config)).parameters


def flops_per_example(config: Config) -> int:
    """Counts the FLOPs of one image's forward pass (see `costs`)."""
    return costs.total(_costs(config)).flops


def _costs(config: Config) -> Iterator[costs.Cost]:
    height, width, channels = config.image_shape
    for stage, filters in enumerate(config.filters):
        if stage:
            height, width = height // 2, width // 2
        for _ in range(config.depth):
            yield costs.conv(
                height * width,
                config.kernel,
                channels,
                filters,
                bias=not config.batch_norm,
            )
            if config.batch_norm:
                yield costs.batch_norm(filters)
            channels = filters
    features = height * width * channels
    if config.dense:
        yield costs.dense(features, config.dense)
        features = config.dense
    yield costs.dense(features, config.num_classes)
