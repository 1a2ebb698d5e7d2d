"""WGAN-GP: a critic that measures a distance, kept smooth by a penalty.

The discriminator, here called critic, learns to score real images above made
ones by as much as it can while its slope stays near one between them; the
difference is the Wasserstein distance, which the generator lowers (Gulrajani
et al., "Improved training of Wasserstein GANs", arxiv.org/abs/1704.00028).
The customary settings: Adam at 1e-4 with beta_1 0 and beta_2 0.9.

A step takes `critic_updates` updates of the critic and one of the generator.
The critic's updates in one step see the same real images, each time beside
newly made ones; the paper takes other real images for each. So an epoch
stays one pass over the data, and every image is seen equally often.

The penalty is one number per example, so the critic must not mix examples:
no batch normalisation.
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
    """A WGAN-GP.

    Attributes:
        discriminator_norm: "layer" or "none": the critic's.
        critic_updates: Updates of the critic for one of the generator.
        penalty: Weight of the gradient penalty.
    """

    discriminator_norm: str = "layer"
    critic_updates: int = 5
    penalty: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(
            ("layer", "none"), discriminator_norm=self.discriminator_norm
        )
        checks.at_least(1, critic_updates=self.critic_updates)
        if not self.penalty >= 0:
            checks.refuse(
                "penalty", self.penalty, "a number from 0", "The usual is 10."
            )


@keras.saving.register_keras_serializable(package=gan.PACKAGE)
class WGANGP(gan.AdversarialModel):
    """See the module; `compile` takes two optimizers."""

    config_class: ClassVar[type[gan_networks.AdversarialConfig]] = Config

    def train_step(self, data: Any) -> dict[str, Any]:
        """Updates the critic `critic_updates` times, the generator once."""
        pixels, label = self.unpack(data)
        for _ in range(self.config.critic_updates):
            self._update_critic(pixels, label)
        optimizer = self.generator_optimizer
        with tf.GradientTape() as tape:
            made = self.make(ops.shape(pixels)[0], label, training=True)
            values = -self.score(made, label, training=True)
            loss = self.loss_of(values, self.generator_loss, optimizer)
        self.update(tape, loss, self.generator, optimizer)
        return self.get_metrics_result()

    def _update_critic(self, pixels: Any, label: Any) -> None:
        optimizer = self.discriminator_optimizer
        made = self.make(ops.shape(pixels)[0], label, training=True)
        with tf.GradientTape() as tape:
            values = self.critic_values(pixels, made, label, True)
            penalty = self.gradient_penalty(pixels, made, label, True)
            values = values + self.config.penalty * penalty
            loss = self.loss_of(values, self.discriminator_loss, optimizer)
        self.update(tape, loss, self.discriminator, optimizer)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Records both losses, without the penalty, and changes nothing."""
        pixels, label = self.unpack(data)
        made = self.make(ops.shape(pixels)[0], label, training=False)
        values = self.critic_values(pixels, made, label, False)
        self.discriminator_loss.update_state(values)
        self.generator_loss.update_state(-self.score(made, label, False))
        return self.get_metrics_result()

    def critic_values(
        self, pixels: Any, made: Any, label: Any, training: bool
    ) -> Any:
        """Gives the critic's loss of each example [batch]."""
        real = self.score(pixels, label, training)
        return self.score(made, label, training) - real

    def gradient_penalty(
        self, pixels: Any, made: Any, label: Any, training: bool
    ) -> Any:
        """Gives (slope - 1)**2 at a random point between each pair [batch]."""
        share = keras.random.uniform(
            (ops.shape(pixels)[0], 1, 1, 1), seed=self.noise
        )
        between = pixels + share * (made - pixels)
        with tf.GradientTape() as tape:
            tape.watch(between)
            score = self.score(between, label, training)
        slope = ops.cast(tape.gradient(score, between), "float32")
        # The root's derivative at zero is infinite.
        squares = ops.sum(ops.square(slope), axis=(1, 2, 3)) + 1e-12
        return ops.square(ops.sqrt(squares) - 1.0)


def build(config: Config) -> WGANGP:
    """Builds the model; compile it with two optimizers.

    Returns:
        A model that is trained on images [batch, height, width, channels] in
        `pixel_range`, alone or as (images, labels).
    """
    return WGANGP(config, name="wgan_gp")


def parameter_count(config: Config) -> int:
    """Counts the weights of both networks, moving statistics included."""
    return costs.total(gan_networks.network_costs(config)).parameters


def flops_per_example(config: Config) -> int:
    """Counts the FLOPs of making one image and scoring one image.

    A training step makes `critic_updates` + 1 images and scores three in each
    of the critic's updates and one more for each example.
    """
    return costs.total(gan_networks.network_costs(config)).flops
