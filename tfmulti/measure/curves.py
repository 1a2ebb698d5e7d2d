"""curves.png: how a run's metrics and speed went, epoch by epoch.

One panel for each metric, with training and validation in the same panel
since they are read against each other, and a last one for the speed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfmulti.measure.records import EpochRecord

TRAIN_COLOUR = "#2a6f97"
HELD_OUT_COLOUR = "#e07a1f"
SPEED_COLOUR = "#52796f"
UNITS = {
    "loss": "nats per prediction",
    "bits_per_byte": "bits per byte",
    "accuracy": "share of examples",
    "learning_rate": "per step",
}


def panels(epochs: Sequence[EpochRecord]) -> tuple[str, ...]:
    """Lists the metrics to draw, each once, without its "val_" twin."""
    names: dict[str, None] = {}
    for record in epochs:
        for name in record.metrics:
            names[name.removeprefix("val_")] = None
    return tuple(names)


def draw_curves(
    epochs: Sequence[EpochRecord], path: Path, *, title: str
) -> None:
    """Draws the picture and writes it as a PNG.

    Args:
        epochs: What metrics.jsonl holds; at least one.
        path: Where the PNG goes.
        title: One line above the panels.
    """
    # The figure class alone: no pyplot, so no display and no global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = panels(epochs)
    columns = min(3, len(names) + 1)
    rows = math.ceil((len(names) + 1) / columns)
    figure = Figure(figsize=(4.6 * columns, 3.3 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, fontweight="bold")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, name in zip(axes, names, strict=False):
        _draw_metric(axis, epochs, name)
    _draw_speed(axes[len(names)], epochs)
    for axis in axes[len(names) + 1 :]:
        axis.set_axis_off()
    figure.savefig(path, dpi=140)


def _draw_metric(axis: Any, epochs: Sequence[EpochRecord], name: str) -> None:
    drawn = (("training", name, TRAIN_COLOUR),
             ("held out", f"val_{name}", HELD_OUT_COLOUR))  # fmt: skip
    for label, key, colour in drawn:
        points = [
            (e.epoch, e.metrics[key])
            for e in epochs
            if math.isfinite(e.metrics.get(key, math.nan))
        ]
        if points:
            _line(axis, points, label, colour)
    _dress(axis, name.replace("_", " "), UNITS.get(name, "value"))
    axis.legend(frameon=False, fontsize=9)


def _draw_speed(axis: Any, epochs: Sequence[EpochRecord]) -> None:
    points = [
        (e.epoch, e.examples_per_s)
        for e in epochs
        if e.examples_per_s is not None
    ]
    if points:
        _line(axis, points, "without first step", SPEED_COLOUR)
        axis.legend(frameon=False, fontsize=9)
        axis.set_ylim(bottom=0)
    _dress(axis, "speed", "examples per second")


def _line(
    axis: Any, points: Sequence[tuple[int, Any]], label: str, colour: str
) -> None:
    # One dot alone would be lost without a marker; many would be a caterpillar.
    marker = "o" if len(points) <= 30 else None
    axis.plot(
        [x for x, _ in points],
        [y for _, y in points],
        label=label,
        color=colour,
        linewidth=1.8,
        marker=marker,
        markersize=3.5,
    )


def _dress(axis: Any, title: str, unit: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_title(title, fontsize=10)
    axis.set_xlabel("epoch", fontsize=9)
    axis.set_ylabel(unit, fontsize=9)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
