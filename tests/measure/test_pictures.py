"""Pictures are PNGs of the right size and content."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.measure.test_records import record
from tfmulti.measure.curves import draw_curves, panels
from tfmulti.measure.grid import GAP, image_grid, write_grid


def test_panels_put_validation_beside_training():
    epochs = [record(1), record(2, metrics={"val_accuracy": 0.5})]
    assert panels(epochs) == ("loss", "accuracy")


@pytest.mark.parametrize("count", [1, 40])
def test_curves_are_drawn(tmp_path: Path, count: int):
    from matplotlib.image import imread

    path = tmp_path / "curves.png"
    epochs = [
        record(i, metrics={"loss": 1 / i, "val_loss": float("nan")})
        for i in range(1, count + 1)
    ]
    draw_curves(epochs, path, title="a run")
    image = imread(path)
    assert image.shape[0] > 300 and image.shape[1] > 800
    assert len(np.unique(image.reshape(-1, image.shape[-1]), axis=0)) > 50


def test_drawing_leaves_pyplot_and_its_global_state_alone():
    code = (
        "import sys, tfmulti.measure, tfmulti.measure.curves as c\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from tests.measure.test_records import record\n"
        "import pathlib, tempfile\n"
        "c.draw_curves([record()], pathlib.Path(tempfile.mkdtemp())/'c.png',"
        " title='t')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_grid_places_every_image_and_clips():
    images = np.zeros((3, 8, 8, 1))
    images[1] = 7.0
    images[2] = 0.5
    grid = image_grid(images, columns=2)
    cell = 48 + GAP
    assert grid.shape == (2 * cell + GAP, 2 * cell + GAP, 3)
    assert (grid[GAP:cell, GAP:cell] == 0).all()
    assert (grid[GAP:cell, cell + GAP : 2 * cell] == 255).all()
    assert (grid[cell + GAP : 2 * cell, GAP:cell] == 128).all()
    assert (grid[:GAP] == 255).all()


def test_grid_keeps_colours_and_does_not_enlarge_large_images():
    images = np.zeros((1, 64, 64, 3))
    images[..., 1] = 1.0
    grid = image_grid(images)
    assert grid.shape == (64 + 2 * GAP, 64 + 2 * GAP, 3)
    assert tuple(grid[10, 10]) == (0, 255, 0)


def test_grid_is_written_as_it_is(tmp_path: Path):
    from matplotlib.image import imread

    images = np.random.default_rng(0).random((5, 8, 8, 1))
    write_grid(images, tmp_path / "samples.png")
    read = np.rint(imread(tmp_path / "samples.png")[..., :3] * 255)
    assert (read == image_grid(images)).all()
