"""DCGAN: a generator and a discriminator that play the original game.

A step is one update of the discriminator, which learns to score real images
above made ones, and then one of the generator, which learns to make images
that are scored as real (the "non-saturating" form, Goodfellow et al.,
arxiv.org/abs/1406.2661). The networks are Radford et al.'s
(arxiv.org/abs/1511.06434), as are the customary settings: Adam at 2e-4 with
beta_1 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import keras
import tensorflow as tf
from keras import ops
from tfmulti_models import checks, costs, gan, gan_networks


@dataclass(frozen=True, kw_only=True)
class Config(gan_networks.AdversarialConfig):
    """A DCGAN.

    Attributes:
        label_smoothing: The discriminator's target for real images is one
            minus this (Salimans et al., arxiv.org/abs/1606.03498, 3.4).
    """

    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.rate(label_smoothing=self.label_smoothing)


@keras.saving.register_keras_serializable(package=gan.PACKAGE)
class DCGAN(gan.AdversarialModel):
    """See the module; `compile` takes two optimizers."""

    config_class: ClassVar[type[gan_networks.AdversarialConfig]] = Config

    def train_step(self, data: Any) -> dict[str, Any]:
        """Updates the discriminator, then the generator, on one batch."""
        pixels, label = self.unpack(data)
        optimizer = self.discriminator_optimizer
        made = self.make(ops.shape(pixels)[0], label, training=True)
        with tf.GradientTape() as tape:
            values = self.discriminator_values(pixels, made, label, True)
            loss = self.loss_of(values, self.discriminator_loss, optimizer)
        self.update(tape, loss, self.discriminator, optimizer)

        optimizer = self.generator_optimizer
        with tf.GradientTape() as tape:
            made = self.make(ops.shape(pixels)[0], label, training=True)
            values = self.generator_values(made, label, True)
            loss = self.loss_of(values, self.generator_loss, optimizer)
        self.update(tape, loss, self.generator, optimizer)
        return self.get_metrics_result()

    def test_step(self, data: Any) -> dict[str, Any]:
        """Records both losses, and changes nothing."""
        pixels, label = self.unpack(data)
        made = self.make(ops.shape(pixels)[0], label, training=False)
        values = self.discriminator_values(pixels, made, label, False)
        self.discriminator_loss.update_state(values)
        self.generator_loss.update_state(
            self.generator_values(made, label, False)
        )
        return self.get_metrics_result()

    def discriminator_values(
        self, pixels: Any, made: Any, label: Any, training: bool
    ) -> Any:
        """Gives the discriminator's loss of each example [batch]."""
        real = self.score(pixels, label, training)
        target = ops.ones_like(real) * (1.0 - self.config.label_smoothing)
        return _cross_entropy(target, real) + _cross_entropy(
            ops.zeros_like(real), self.score(made, label, training)
        )

    def generator_values(self, made: Any, label: Any, training: bool) -> Any:
        """Gives the generator's loss of each example [batch]."""
        score = self.score(made, label, training)
        return _cross_entropy(ops.ones_like(score), score)


def _cross_entropy(target: Any, score: Any) -> Any:
    return ops.binary_crossentropy(target, score, from_logits=True)


def build(config: Config) -> DCGAN:
    """Builds the model; compile it with two optimizers.

    Returns:
        A model that is trained on images [batch, height, width, channels] in
        `pixel_range`, alone or as (images, labels).
    """
    return DCGAN(config, name="dcgan")


def parameter_count(config: Config) -> int:
    """Counts the weights of both networks, moving statistics included."""
    return costs.total(gan_networks.network_costs(config)).parameters


def flops_per_example(config: Config) -> int:
    """Counts the FLOPs of making one image and scoring one image.

    A training step makes two images and scores three for each example.
    """
    return costs.total(gan_networks.network_costs(config)).flops
