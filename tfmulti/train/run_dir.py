"""The folder of one run, and what lies where in it.

    config.json     the job, the experiment and the versions, as resolved
    metrics.jsonl   one line for each epoch, while the run goes on
    model.keras     the trained model
    samples.png     what a GAN draws; or
    sample.txt      what a language model writes
    curves.png      metrics and speed, epoch by epoch
    summary.json    the closing summary
    logs/           each worker's output (the launcher writes it)

Only the chief writes here; all paths are relative, so that a folder can be
moved and still be read.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from tfmulti.measure import check_fresh
from tfmulti.version import VERSION

CONFIG = "config.json"
MODEL = "model.keras"
CURVES = "curves.png"
SUMMARY = "summary.json"
SAMPLE_GRID = "samples.png"
SAMPLE_TEXT = "sample.txt"


def open_run_dir(path: str, config: Mapping[str, Any]) -> Path:
    """Makes the folder of a run and writes its config.json.

    Args:
        path: The folder; it may exist.
        config: What was asked for, as JSON values.

    Raises:
        UsageError: The folder holds the metrics of a run already.
    """
    check_fresh(path)
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / CONFIG, dict(config) | {"versions": versions()})
    return folder


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a document as indented JSON, a line for each value."""
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")


def versions() -> dict[str, str]:
    """Gives the versions that a run's numbers depend on."""
    packages = ("tensorflow", "keras", "numpy")
    return {
        "tfmulti": VERSION,
        "python": platform.python_version(),
    } | {name: metadata.version(name) for name in packages}
