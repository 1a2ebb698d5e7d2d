"""What the two adversarial models share: training state and sampling.

    latents --generator--> image (made) --+
                                          +--discriminator--> score
    image (real) -------------------------+

`AdversarialModel` is right under tf.distribute because it follows Keras' own
conventions: noise comes from a `SeedGenerator` that the model owns, and every
loss is reduced by a `keras.losses.Loss`, which gives the local mean divided
by the number of replicas, so that the optimizers' sum over replicas is the
gradient of the global mean. On one device the same lines give the plain mean.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops
from tfmulti_models import checks
from tfmulti_models.gan_networks import (
    AdversarialConfig,
    build_discriminator,
    build_generator,
)

PACKAGE = "tfmulti_models"
# A sample is drawn in parts of this many images, to bound memory.
SAMPLE_BATCH = 256


@keras.saving.register_keras_serializable(package=PACKAGE)
class MeanOfExamples(keras.losses.Loss):
    """The mean of `y_pred`, which already holds one loss per example.

    It exists for Keras' reduction: under a strategy the local mean is divided
    by the number of replicas, here as in every other Keras loss.
    """

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Gives `y_pred`; `y_true` is not used."""
        return y_pred


class AdversarialModel(keras.Model):
    """A generator and a discriminator that are trained in turns.

    Called on images it gives their scores; `generate` makes images. Trained
    on images, or on (images, labels), whose labels are ignored unless
    `num_classes` is set. A subclass has the `train_step`.

    Args:
        config: Sizes of both networks.
        dtype: Dtype policy; None: the global one.
    """

    config_class: ClassVar[type[AdversarialConfig]] = AdversarialConfig

    def __init__(
        self, config: AdversarialConfig, *, dtype: Any = None, **kwargs: Any
    ):
        super().__init__(dtype=dtype, **kwargs)
        self.config = config
        self.generator = build_generator(config, self.dtype_policy)
        self.discriminator = build_discriminator(config, self.dtype_policy)
        self.noise = keras.random.SeedGenerator()
        self.mean = MeanOfExamples()
        self.generator_loss = keras.metrics.Mean(name="generator_loss")
        self.discriminator_loss = keras.metrics.Mean(name="discriminator_loss")
        self.build((None, *config.image_shape))

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """The two losses; Keras' own `loss` would stay zero."""
        return [self.generator_loss, self.discriminator_loss]

    def build(self, input_shape: Any) -> None:
        """Both networks were built on creation: nothing is left to do."""
        self.built = True

    def call(self, images: Any, training: bool | None = None) -> Any:
        """Scores images; with classes, by the class that suits each best."""
        pixels = self.to_pixels(images)
        if not self.config.num_classes:
            return self.discriminator(pixels, training=training)
        scores = []
        for index in range(self.config.num_classes):
            label = ops.zeros_like(pixels[:, 0, 0, 0], "int32") + index
            inputs = self.with_label(pixels, self.one_hot(label))
            scores.append(self.discriminator(inputs, training=training))
        return ops.max(ops.stack(scores), axis=0)

    def compile(
        self,
        generator_optimizer: Any = "adam",
        discriminator_optimizer: Any = "adam",
        **kwargs: Any,
    ) -> None:
        """Sets the two optimizers.

        Args:
            generator_optimizer: A Keras optimizer, or its name.
            discriminator_optimizer: Another Keras optimizer, or its name.
            **kwargs: What `keras.Model.compile` takes beside optimizer, loss
                and metrics: `steps_per_execution`, `jit_compile`, ...
        """
        super().compile(optimizer=None, **kwargs)
        self.generator_optimizer = self._optimizer(generator_optimizer)
        self.discriminator_optimizer = self._optimizer(discriminator_optimizer)
        # Their variables belong to the strategy the model was made under.
        with self.distribute_strategy.scope():
            self.generator_optimizer.build(self.generator.trainable_variables)
            self.discriminator_optimizer.build(
                self.discriminator.trainable_variables
            )

    def _optimizer(self, identifier: Any) -> Any:
        optimizer = keras.optimizers.get(identifier)
        scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        if self.dtype_policy.name == "mixed_float16" and not scaled:
            # As keras.Model.compile does it for the one optimizer it knows.
            return keras.optimizers.LossScaleOptimizer(optimizer)
        return optimizer

    def to_pixels(self, images: Any) -> Any:
        """Moves images from `pixel_range` to float32 pixels in [-1, 1]."""
        low, high = self.config.pixel_range
        images = ops.cast(images, "float32")
        return (images - low) * (2.0 / (high - low)) - 1.0

    def unpack(self, data: Any) -> tuple[Any, Any]:
        """Gives pixels and one-hot labels (or None) of a batch of data."""
        images, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        if not self.config.num_classes:
            return self.to_pixels(images), None
        if labels is None:
            checks.refuse(
                "labels",
                None,
                "a class for each image, since num_classes is set",
                "Train on (images, labels), or set num_classes to None.",
            )
        return self.to_pixels(images), self.one_hot(labels)

    def one_hot(self, labels: Any) -> Any:
        """Gives labels [batch] as float32 [batch, num_classes]."""
        labels = ops.cast(ops.reshape(labels, (-1,)), "int32")
        return ops.one_hot(labels, self.config.num_classes, dtype="float32")

    def with_label(self, inputs: Any, label: Any) -> Any:
        """Gives the inputs of either network."""
        return inputs if label is None else [inputs, label]

    def latents(self, count: Any) -> Any:
        """Draws latents [count, latent_size] from the model's own stream."""
        shape = (count, self.config.latent_size)
        return keras.random.normal(shape, seed=self.noise)

    def make(self, count: Any, label: Any, training: bool) -> Any:
        """Makes `count` images of fresh latents, as pixels in [-1, 1]."""
        inputs = self.with_label(self.latents(count), label)
        return self.generator(inputs, training=training)

    def score(self, pixels: Any, label: Any, training: bool) -> Any:
        """Scores pixels [batch, height, width, channels] as [batch]."""
        inputs = self.with_label(pixels, label)
        return self.discriminator(inputs, training=training)

    def update(
        self, tape: Any, loss: Any, network: keras.Model, optimizer: Any
    ) -> None:
        """Takes one optimizer step of one network.

        Args:
            tape: The tf.GradientTape that recorded `loss`.
            loss: What `loss_of` gave.
            network: `self.generator` or `self.discriminator`.
            optimizer: Its optimizer.
        """
        weights = network.trainable_variables
        optimizer.apply(tape.gradient(loss, weights), weights)

    def loss_of(self, values: Any, metric: Any, optimizer: Any) -> Any:
        """Reduces one loss per example to what `update` differentiates.

        Args:
            values: Losses [batch], float32.
            metric: Where they are recorded.
            optimizer: The optimizer that will take the step.

        Returns:
            A scalar; its sum over replicas is the global mean.
        """
        metric.update_state(values)
        return optimizer.scale_loss(self.mean(values, values))

    def generate(self, count: int, seed: int, labels: Any = None) -> np.ndarray:
        """Makes images; equal seeds give equal images.

        Args:
            count: How many.
            seed: Seed of the latents.
            labels: Class of each image [count]; None: the classes in turn.
                Only with `num_classes`.

        Returns:
            float32 [count, height, width, channels] in `pixel_range`.
        """
        shape = (count, self.config.latent_size)
        latents = keras.random.normal(shape, seed=seed)
        if labels is None:
            labels = np.arange(count) % (self.config.num_classes or 1)
        parts = []
        for start in range(0, count, SAMPLE_BATCH):
            part = slice(start, start + SAMPLE_BATCH)
            label = None
            if self.config.num_classes:
                label = self.one_hot(np.asarray(labels)[part])
            inputs = self.with_label(latents[part], label)
            parts.append(np.asarray(self.generator(inputs, training=False)))
        low, high = self.config.pixel_range
        return (np.concatenate(parts) + 1.0) * ((high - low) / 2.0) + low

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal model."""
        return {
            "config": dataclasses.asdict(self.config),
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "name": self.name,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> AdversarialModel:
        """Makes a model from what `get_config` gave."""
        sizes = cls.config_class(**config["config"])
        dtype = keras.dtype_policies.deserialize(config["dtype"])
        return cls(sizes, dtype=dtype, name=config["name"])

    def save_own_variables(self, store: Any) -> None:
        """Stores the stream of noise, which Keras leaves out of a file."""
        store["noise"] = np.asarray(self.noise.state)

    def load_own_variables(self, store: Any) -> None:
        """Takes the stream of noise up where the stored model left it."""
        self.noise.state.assign(np.asarray(store["noise"]))

    def get_compile_config(self) -> dict[str, Any]:
        """Gives both optimizers' configurations."""
        if not self.compiled:
            return {}
        return {
            name: keras.optimizers.serialize(getattr(self, name))
            for name in ("generator_optimizer", "discriminator_optimizer")
        }

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as the saved model was compiled."""
        self.compile(
            **{
                name: keras.optimizers.deserialize(value)
                for name, value in config.items()
            }
        )
