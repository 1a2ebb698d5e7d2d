"""The residual networks against published figures."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest
from tfmulti_models import resnet

# Trainable parameters of torchvision's models of the same form.
PUBLISHED = {
    18: 11_689_512,
    34: 21_797_672,
    50: 25_557_032,
    101: 44_549_160,
    152: 60_192_808,
}


@pytest.mark.parametrize("depth", [18, 50])
def test_imagenet_form_has_the_published_size(depth, devices):
    model = resnet.build(resnet.Config(depth=depth))
    sizes = [math.prod(weight.shape) for weight in model.trainable_weights]
    assert sum(sizes) == PUBLISHED[depth]


@pytest.mark.parametrize("depth", PUBLISHED)
def test_closed_form_has_the_published_size(depth):
    config = resnet.Config(depth=depth)
    statistics = sum(
        2 * layer_channels for layer_channels in _norm_channels(config)
    )
    trainable = resnet.parameter_count(config) - statistics
    assert trainable == PUBLISHED[depth]


def _norm_channels(config: resnet.Config) -> list[int]:
    """Channels of every normalisation, from the paper's table 1."""
    channels = [64]
    for stage, blocks in enumerate(config.blocks):
        width = config.filters[stage]
        last = 4 * width if config.bottleneck else width
        each = [width, width, last] if config.bottleneck else [width, width]
        channels += each * blocks
        if config.bottleneck or stage:
            channels.append(last)
    return channels


def test_resnet50_takes_the_quoted_multiply_adds():
    flops = resnet.flops_per_example(resnet.Config(depth=50))
    assert flops / 2 == pytest.approx(4.09e9, rel=0.005)


@pytest.mark.parametrize("form", ["imagenet", "cifar"])
def test_bottleneck_strides_in_the_3x3(form, devices):
    model = resnet.build(
        resnet.Config(depth=50, form=form, image_shape=(64, 64, 3))
    )
    strided = [
        layer.kernel_size
        for layer in model.layers
        if isinstance(layer, keras.layers.Conv2D) and layer.strides == (2, 2)
    ]
    # Three stages, each a 1x1 shortcut beside the 3x3; the stem is 7x7.
    stem = [(7, 7)] if form == "imagenet" else []
    assert sorted(strided) == [(1, 1)] * 3 + [(3, 3)] * 3 + stem


@pytest.mark.parametrize("form", ["imagenet", "cifar"])
def test_zero_init_makes_blocks_start_as_the_identity(form, devices):
    def zeros(start):
        config = resnet.Config(
            depth=18,
            form=form,
            image_shape=(32, 32, 3),
            zero_init_residual=start,
        )
        return sum(
            isinstance(layer, keras.layers.BatchNormalization)
            and not np.any(np.asarray(layer.gamma))
            for layer in resnet.build(config).layers
        )

    assert zeros(True) == 8
    assert zeros(False) == 0


@pytest.mark.parametrize("form", ["imagenet", "cifar"])
@pytest.mark.parametrize("synchronized", [True, False])
def test_every_norm_is_synchronized_or_none(form, synchronized, devices):
    config = resnet.Config(
        depth=18,
        form=form,
        image_shape=(32, 32, 3),
        synchronized=synchronized,
    )
    norms = [
        layer.synchronized
        for layer in resnet.build(config).layers
        if isinstance(layer, keras.layers.BatchNormalization)
    ]
    assert norms and set(norms) == {synchronized}


def test_without_keras_hub_the_remedy_is_said(monkeypatch, devices):
    monkeypatch.setitem(__import__("sys").modules, "keras_hub", None)
    with pytest.raises(ImportError, match=r"pip install 'tfmulti\[models\]'"):
        resnet.build(resnet.Config(depth=18))
