"""Made-up examples: any shape, no files, and something to learn.

Every example is computed from (seed, index) alone, from a bank of random
numbers that is drawn once: an example is the stretch of the bank that begins
at a place hashed from its index. An image is the mean of such a stretch and
of one that belongs to its class, so that a model that works gets better, and
making one costs a copy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from tfmulti.data.source import cpu_constant, digest

# The bank is copied in blocks; a stretch begins at one of `_PLACES` blocks.
_BLOCK = 64
_PLACES = 16_381
# Both are primes, so neighbours get places far apart (Knuth's hashing).
_MULTIPLIER = 2_654_435_761


class SyntheticImages:
    """A source of made-up images.

    Args:
        count: Examples.
        image_shape: (height, width, channels).
        num_classes: Classes; None: examples are images without a label.
        pixel_range: Values of a black and of a white pixel.
        seed: Seed of the bank.
        first: Number of the first example; disjoint stretches of numbers
            give disjoint examples.
    """

    def __init__(
        self,
        *,
        count: int,
        image_shape: tuple[int, int, int],
        num_classes: int | None,
        pixel_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
        first: int = 0,
    ):
        self._count, self._first = count, first
        self._shape, self._classes = image_shape, num_classes
        size = math.prod(image_shape)
        numbers = np.random.default_rng([seed, 1]).uniform(
            *pixel_range, _bank_shape(size)
        )
        self._bank = cpu_constant(numbers.astype(np.float32))
        image = tf.TensorSpec(image_shape, tf.float32)
        self.element_spec: Any = image
        if num_classes:
            self.element_spec = (image, tf.TensorSpec([], tf.int32))
        self.fingerprint = digest(
            [f"{seed} {first} {image_shape} {num_classes} {pixel_range}"]
        )

    def __len__(self) -> int:
        return self._count

    def fetch(self, indices: tf.Tensor) -> Any:
        """Makes the examples with these numbers."""
        numbers = indices + self._first
        labels = numbers % (self._classes or 1)
        size = math.prod(self._shape)
        noise = _stretches(self._bank, _place(numbers), size)
        pattern = _stretches(self._bank, _place(-1 - labels), size)
        images = tf.reshape((noise + pattern) / 2, [-1, *self._shape])
        if not self._classes:
            return images
        return images, tf.cast(labels, tf.int32)


class SyntheticTokens:
    """A source of made-up token sequences, cut from one random text.

    Args:
        count: Examples.
        context: Tokens in an input, and in a target.
        vocabulary_size: Tokens are below it.
        seed: Seed of the text.
        first: Number of the first example.
    """

    def __init__(
        self,
        *,
        count: int,
        context: int,
        vocabulary_size: int,
        seed: int = 0,
        first: int = 0,
    ):
        self._count, self._first, self._context = count, first, context
        rng = np.random.default_rng([seed, 2])
        # Low tokens are frequent, as in a real vocabulary.
        drawn = rng.random(_bank_shape(context + 1)) ** 3 * vocabulary_size
        self._bank = cpu_constant(drawn.astype(np.int32))
        tokens = tf.TensorSpec([context], tf.int32)
        self.element_spec = (tokens, tokens)
        self.fingerprint = digest(
            [f"{seed} {first} {context} {vocabulary_size}"]
        )

    def __len__(self) -> int:
        return self._count

    def fetch(self, indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Makes the examples with these numbers."""
        places = _place(indices + self._first)
        tokens = _stretches(self._bank, places, self._context + 1)
        return tokens[:, :-1], tokens[:, 1:]


def _place(numbers: tf.Tensor) -> tf.Tensor:
    return (numbers * _MULTIPLIER) % _PLACES


def _bank_shape(size: int) -> tuple[int, int]:
    """Gives the shape of a bank for stretches of `size` numbers."""
    return _PLACES + math.ceil(size / _BLOCK), _BLOCK


def _stretches(bank: tf.Tensor, places: tf.Tensor, size: int) -> tf.Tensor:
    """Gives [rows, size]: the stretch of the bank from each place on."""
    blocks = tf.range(math.ceil(size / _BLOCK), dtype=tf.int64)
    found = tf.gather(bank, places[:, None] + blocks)
    width = math.ceil(size / _BLOCK) * _BLOCK
    return tf.reshape(found, [-1, width])[:, :size]
