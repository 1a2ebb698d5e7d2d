"""samples.png: generated images side by side, small ones enlarged.

Pixels are repeated, not smoothed: what a model draws is what one sees.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

SMALLEST_SIDE = 48  # pixels of one image in the picture
GAP = 2  # pixels between images


def image_grid(images: np.ndarray, columns: int | None = None) -> np.ndarray:
    """Lays images out in rows.

    Args:
        images: [count, height, width, channels] in 0..1, with 1 or 3
            channels; values outside are clipped.
        columns: Images in a row; None makes the grid nearly square.

    Returns:
        uint8 [height, width, 3], white between the images.
    """
    count, height, width, channels = images.shape
    assert count and channels in (1, 3)
    columns = columns or math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    zoom = max(1, math.ceil(SMALLEST_SIDE / min(height, width)))
    cell_h, cell_w = height * zoom + GAP, width * zoom + GAP
    grid = np.full((rows * cell_h + GAP, columns * cell_w + GAP, 3), 255)
    for index, image in enumerate(images):
        top = index // columns * cell_h + GAP
        left = index % columns * cell_w + GAP
        pixels = np.clip(image, 0.0, 1.0) * 255
        pixels = np.repeat(np.repeat(pixels, zoom, axis=0), zoom, axis=1)
        grid[top : top + height * zoom, left : left + width * zoom] = np.rint(
            pixels
        )
    return grid.astype(np.uint8)


def write_grid(images: np.ndarray, path: Path) -> None:
    """Writes `image_grid(images)` as a PNG."""
    from matplotlib.image import imsave

    imsave(path, image_grid(images))
