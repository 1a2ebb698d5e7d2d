"""Images: a folder for each class, or one folder of images without labels.

Files are decoded and resized when they are asked for; JPEG and PNG are told
by their content. An image that does not decode stops the run with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfmulti.data.each import read_each, read_marked
from tfmulti.data.source import cpu_constant, digest


def scale_pixels(
    pixel_range: tuple[float, float], white: float = 255.0
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Gives a function from stored grey levels to float32 pixels.

    Args:
        pixel_range: Values of a black and of a white pixel.
        white: The stored level that is white; black is zero.
    """
    black, top = pixel_range
    factor = np.float32((top - black) / white)

    def scale(levels: tf.Tensor) -> tf.Tensor:
        return tf.cast(levels, tf.float32) * factor + np.float32(black)

    return scale


def decoder(
    image_shape: tuple[int, int, int], pixel_range: tuple[float, float]
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Gives a function from an encoded image to float32 `image_shape`.

    The largest middle part of the wanted proportions is resized by bilinear
    interpolation with antialiasing.

    Args:
        image_shape: (height, width, channels); channels are 1 or 3.
        pixel_range: Values of a black and of a white pixel.
    """
    height, width, channels = image_shape
    scale = scale_pixels(pixel_range)

    def decode(encoded: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_image(
            encoded, channels=channels, expand_animations=False
        )
        image = _fit(image, height, width)
        return tf.ensure_shape(scale(image), image_shape)

    return decode


def _fit(image: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """Crops the middle part of the wanted proportions, then resizes it."""
    size = tf.shape(image)[:2]
    wanted = tf.constant([height, width])
    # The largest box of the wanted proportions: one side fits exactly.
    box = tf.minimum(size, size[::-1] * wanted // wanted[::-1])
    box = tf.maximum(box, 1)
    start = (size - box) // 2
    image = image[
        start[0] : start[0] + box[0], start[1] : start[1] + box[1]
    ]
    resized = tf.image.resize(image, [height, width], antialias=True)
    return tf.clip_by_value(resized, 0.0, 255.0)


class ImageSource:
    """A source over image files.

    Args:
        paths: The files, in the order that numbers the examples.
        labels: The class of each file, or None: examples are images alone.
        image_shape: (height, width, channels) to resize to.
        pixel_range: Values of a black and of a white pixel.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        labels: Sequence[int] | None,
        image_shape: tuple[int, int, int],
        pixel_range: tuple[float, float],
    ):
        self._paths = cpu_constant([str(path) for path in paths])
        self._labels = None
        image = tf.TensorSpec(image_shape, tf.float32)
        self.element_spec: Any = image
        if labels is not None:
            self._labels = cpu_constant(labels, tf.int32)
            self.element_spec = (image, tf.TensorSpec([], tf.int32))
        self._image_spec = image
        self._decode = decoder(image_shape, pixel_range)
        self._length = len(paths)
        self.fingerprint = digest(
            f"{path.parent.name}/{path.name} {path.stat().st_size}"
            for path in paths
        )

    def __len__(self) -> int:
        return self._length

    def fetch(self, indices: tf.Tensor) -> Any:
        """Reads and decodes the images with these numbers."""
        images = read_each(
            self._load,
            self.names(indices),
            self._image_spec,
            lambda broken: self.names(tf.gather(indices, broken)),
        )
        return self._with_labels(images, indices)

    def fetch_marked(self, indices: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """As `fetch`; zeros for the images that do not decode."""
        images, whole = read_marked(
            self._load, self.names(indices), self._image_spec
        )
        return self._with_labels(images, indices), whole

    def names(self, indices: tf.Tensor) -> tf.Tensor:
        """Gives the paths of the images with these numbers."""
        return tf.gather(self._paths, indices)

    def _load(self, path: tf.Tensor) -> tf.Tensor:
        return self._decode(tf.io.read_file(path))

    def _with_labels(self, images: tf.Tensor, indices: tf.Tensor) -> Any:
        if self._labels is None:
            return images
        return images, tf.gather(self._labels, indices)
