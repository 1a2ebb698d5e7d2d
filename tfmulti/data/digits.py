"""The optical digits that ship with tfmulti: real data on every machine.

1797 handwritten digits, 8 x 8 pixels of 17 grey levels: the test part of UCI
"Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, 1998,
doi.org/10.24432/C50P49, CC BY 4.0), re-encoded as a compressed NumPy file of
55 KB. `optdigits/ATTRIBUTION.md` says what was changed.

The set is split once and for all: in the order of the file, sorted stably by
class, every fifth example beginning with the first is held out. That gives
1437 examples to train on and 360 to test, 35 to 37 of each class. Both parts
hold digits of the same writers, so the test says how well new digits of
known writers are read.
"""

from __future__ import annotations

from importlib import resources

import numpy as np

from tfmulti.data.arrays import ArraySource
from tfmulti.data.images import scale_pixels

CLASSES = tuple(str(digit) for digit in range(10))
IMAGE_SHAPE = (8, 8, 1)
WHITE = 16
LICENCE = "CC BY 4.0"
DESCRIPTION = (
    "UCI Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak, "
    "1998), test part: 8 x 8 pixels"
)


def read() -> tuple[np.ndarray, np.ndarray]:
    """Reads all digits in the order of the original file.

    Returns:
        Images, uint8 [1797, 8, 8] in 0 .. 16, and labels, uint8 [1797].
    """
    file = resources.files("tfmulti.data") / "optdigits" / "optdigits.npz"
    with file.open("rb") as stream, np.load(stream) as stored:
        return stored["images"], stored["labels"]


def is_test(labels: np.ndarray) -> np.ndarray:
    """Tells which examples are held out, bool of the labels' shape."""
    held_out = np.zeros(len(labels), bool)
    held_out[np.argsort(labels, kind="stable")[::5]] = True
    return held_out


def sources(
    pixel_range: tuple[float, float], with_labels: bool
) -> tuple[ArraySource, ArraySource]:
    """Gives the train and the test part.

    Args:
        pixel_range: Values of a black and of a white pixel.
        with_labels: Whether an example is (image, label) or an image alone.

    Returns:
        Sources of float32 [8, 8, 1] images and int32 [] labels.
    """
    images, labels = read()
    held_out = is_test(labels)

    def part(rows: np.ndarray) -> ArraySource:
        pixels = images[rows][..., None]
        scale = scale_pixels(pixel_range, white=WHITE)
        if not with_labels:
            return ArraySource(pixels, scale)
        pairs = (pixels, labels[rows].astype(np.int32))
        return ArraySource(pairs, lambda x, y: (scale(x), y))

    return part(~held_out), part(held_out)
