"""Residual networks, 18 to 152 layers, in two forms.

    form       stem                    stages                 made from
    imagenet   7x7 stride 2, max-pool  four, 64 to 512 wide   keras_hub
    cifar      3x3, no pooling         four, 64 to 512 wide   here
    cifar      3x3, no pooling         three, 16 to 64 wide   here (20 ... 110)

The bottleneck puts its stride in the 3x3 convolution ("v1.5", the usual
benchmark form, 25 557 032 trainable parameters at depth 50).
`keras.applications` has the older form alone (stride in the 1x1, biases), so
the imagenet form is keras_hub's `ResNetBackbone` from explicit settings,
without downloads; it has no small-image stem, which is why the cifar form is
written here. keras_hub is the optional extra `models`.

He et al., "Deep residual learning for image recognition"
(arxiv.org/abs/1512.03385): section 3.4 the imagenet form, section 4.2 the
narrow cifar family of depth 6n+2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
from keras import layers
from tfmulti_models import checks, costs

# Blocks of each stage; from depth 50 on the blocks are bottlenecks.
WIDE = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
# Depth 6n+2: three stages of n basic blocks.
NARROW = {6 * n + 2: (n, n, n) for n in (3, 5, 7, 9, 18)}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A residual network.

    Attributes:
        depth: Layers with weights: 18, 34, 50, 101 or 152; in the cifar form
            also 20, 32, 44, 56 or 110.
        form: "imagenet" or "cifar".
        image_shape: Height, width and channels of an image.
        num_classes: Classes to tell apart.
        zero_init_residual: Whether the last norm of each block starts at
            zero, so that every block starts as the identity. It lets large
            batches train (Goyal et al., arxiv.org/abs/1706.02677, 5.1).
        synchronized: Whether batch statistics are those of all replicas.
    """

    depth: int = 50
    form: str = "imagenet"
    image_shape: tuple[int, int, int] = (224, 224, 3)
    num_classes: int = 1000
    zero_init_residual: bool = True
    synchronized: bool = False

    def __post_init__(self) -> None:
        shape = checks.image_shape(self.image_shape)
        object.__setattr__(self, "image_shape", shape)
        checks.one_of(("imagenet", "cifar"), form=self.form)
        narrow = NARROW if self.form == "cifar" else {}
        checks.one_of(sorted(WIDE | narrow), depth=self.depth)
        checks.at_least(2, num_classes=self.num_classes)
        smallest = 32 if self.form == "imagenet" else 8
        if min(shape[:2]) < smallest:
            checks.refuse(
                "image_shape",
                shape,
                f"at least {smallest}x{smallest} pixels in this form",
                "Use form='cifar' or larger images.",
            )

    @property
    def blocks(self) -> tuple[int, ...]:
        """Blocks of each stage."""
        return (WIDE | NARROW)[self.depth]

    @property
    def filters(self) -> tuple[int, ...]:
        """Channels of each stage, before a bottleneck's fourfold."""
        if self.depth in NARROW:
            return (16, 32, 64)
        return (64, 128, 256, 512)

    @property
    def bottleneck(self) -> bool:
        """Whether the blocks are bottlenecks: 1x1, 3x3, 1x1."""
        return self.depth in WIDE and self.depth >= 50


def build(config: Config) -> keras.Model:
    """Builds the network.

    Returns:
        A model from images [batch, height, width, channels] to float32 logits
        [batch, num_classes].

    Raises:
        ImportError: The imagenet form is asked for without keras_hub.
    """
    if config.form == "imagenet":
        inputs, x = _imagenet_features(config)
    else:
        inputs, x = _cifar_features(config)
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    logits = layers.Dense(config.num_classes, dtype="float32", name="logits")
    name = f"resnet{config.depth}_{config.form}"
    return keras.Model(inputs, logits(x), name=name)


def _imagenet_features(config: Config) -> tuple[Any, Any]:
    backbone = _keras_hub().models.ResNetBackbone(
        input_conv_filters=[64],
        input_conv_kernel_sizes=[7],
        stackwise_num_filters=list(config.filters),
        stackwise_num_blocks=list(config.blocks),
        stackwise_num_strides=[1, 2, 2, 2],
        block_type="bottleneck_block" if config.bottleneck else "basic_block",
        image_shape=config.image_shape,
    )
    last = "_3_bn" if config.bottleneck else "_2_bn"
    for layer in backbone.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.synchronized = config.synchronized
            if config.zero_init_residual and layer.name.endswith(last):
                layer.gamma.assign(keras.ops.zeros_like(layer.gamma))
    return backbone.input, backbone.output


def _keras_hub() -> Any:
    """Imports keras_hub, late: it is an extra, and slow to import."""
    try:
        import keras_hub
    except ImportError as error:
        raise ImportError(
            "resnet form='imagenet' is built from keras_hub, which is not "
            "installed. Install it with: pip install 'tfmulti[models]'."
        ) from error
    return keras_hub


def _cifar_features(config: Config) -> tuple[Any, Any]:
    x = inputs = keras.Input(config.image_shape, name="image")
    x = layers.ReLU()(_conv_norm(x, config.filters[0], 3, 1, config))
    for stage, blocks in enumerate(config.blocks):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = _block(x, config.filters[stage], stride, config)
    return inputs, x


def _block(x, filters: int, stride: int, config: Config):
    outputs = filters * (4 if config.bottleneck else 1)
    shortcut = x
    if stride > 1 or x.shape[-1] != outputs:
        shortcut = _conv_norm(x, outputs, 1, stride, config)
    if config.bottleneck:
        x = layers.ReLU()(_conv_norm(x, filters, 1, 1, config))
        x = layers.ReLU()(_conv_norm(x, filters, 3, stride, config))
        x = _conv_norm(x, outputs, 1, 1, config, last=True)
    else:
        x = layers.ReLU()(_conv_norm(x, filters, 3, stride, config))
        x = _conv_norm(x, filters, 3, 1, config, last=True)
    return layers.ReLU()(layers.Add()([shortcut, x]))


def _conv_norm(
    x,
    filters: int,
    kernel: int,
    stride: int,
    config: Config,
    last: bool = False,
):
    if stride > 1 and kernel > 1:
        # As in the paper: one pixel on each side, where "same" would pad
        # the right and the lower side alone.
        x = layers.ZeroPadding2D(kernel // 2)(x)
    x = layers.Conv2D(
        filters,
        kernel,
        strides=stride,
        padding="valid" if stride > 1 else "same",
        use_bias=False,
        kernel_initializer="he_normal",
    )(x)
    zero = last and config.zero_init_residual
    return layers.BatchNormalization(
        momentum=0.9,
        epsilon=1e-5,
        gamma_initializer="zeros" if zero else "ones",
        synchronized=config.synchronized,
    )(x)


def parameter_count(config: Config) -> int:
    """Counts all weights, moving statistics included."""
    return costs.total(_costs(config)).parameters


def flops_per_example(config: Config) -> int:
    """Counts the FLOPs of one image's forward pass (see `costs`).

    ResNet-50 at 224x224 has 8.2 G: the 4.1 G multiply-adds that are usually
    quoted, times two.
    """
    return costs.total(_costs(config)).flops


def _costs(config: Config) -> Iterator[costs.Cost]:
    height, width, channels = config.image_shape
    first = config.filters[0]
    if config.form == "imagenet":
        height, width = -(-height // 2), -(-width // 2)
        yield _conv_norm_cost(height * width, 7, channels, first)
        height, width = -(-height // 2), -(-width // 2)
    else:
        yield _conv_norm_cost(height * width, 3, channels, first)
    channels = first
    for stage, blocks in enumerate(config.blocks):
        for block in range(blocks):
            before = height * width
            if stage and not block:
                height, width = -(-height // 2), -(-width // 2)
            yield from _block_costs(
                before, height * width, channels, config.filters[stage], config
            )
            channels = config.filters[stage] * (4 if config.bottleneck else 1)
    yield costs.dense(channels, config.num_classes)


def _block_costs(
    before: int, after: int, inputs: int, filters: int, config: Config
) -> Iterator[costs.Cost]:
    """Costs of a block on `before` pixels that leaves `after` pixels."""
    outputs = filters * (4 if config.bottleneck else 1)
    if before != after or inputs != outputs:
        yield _conv_norm_cost(after, 1, inputs, outputs)
    if config.bottleneck:
        yield _conv_norm_cost(before, 1, inputs, filters)
        yield _conv_norm_cost(after, 3, filters, filters)
        yield _conv_norm_cost(after, 1, filters, outputs)
    else:
        yield _conv_norm_cost(after, 3, inputs, filters)
        yield _conv_norm_cost(after, 3, filters, filters)


def _conv_norm_cost(
    positions: int, kernel: int, inputs: int, outputs: int
) -> costs.Cost:
    conv = costs.conv(positions, kernel, inputs, outputs, bias=False)
    return conv + costs.batch_norm(outputs)
