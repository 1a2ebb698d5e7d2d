"""The layer table, enforced: imports point down, and siblings keep apart.

Every import statement counts, also one inside a function (which would hide a
wrong cut) and one for type checkers only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Each row may import the rows above it; members of a row never each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "units", "version"),
    ("console", "backend", "emulation", "quiet", "config", "communication",
     "hardware", "keras3"),
    ("cluster", "data"),
    ("launch", "strategy", "diagnose", "planner"),
    ("measure", "deploy", "pipelining", "callbacks"),
    ("train", "probes"),
    ("run", "doctor", "plan", "bench"),
    ("cli",),
    ("__main__",),
)

# Packages and modules whose files may import TensorFlow and Keras.
RUNTIME = ("keras3", "strategy", "train", "probes", "data", "pipelining",
           "callbacks")
HEAVY = ("tensorflow", "keras", "tensorflow_datasets", "keras_hub", "tf_keras")

# The public face gives its version and, lazily, `init`.
ROOT_IMPORTS = {"version", "strategy", "backend", "quiet"}

# What the folders beside the toolkit may import of it.
BESIDE = {"models": set(), "experiments": {"config"}}

LEVEL = {name: level for level, row in enumerate(LAYERS) for name in row}


def imports(source: str, package: str = "") -> Iterator[str]:
    """Lists the full names that a file imports, relative ones resolved."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                kept = package.split(".")[: 1 - node.level or None]
                base = ".".join([*kept, base]).rstrip(".")
            for alias in node.names:
                yield f"{base}.{alias.name}"


def member(name: str) -> str | None:
    """Gives the layer's member that a full name belongs to, if it is ours."""
    parts = name.split(".")
    return parts[1] if parts[0] == "tfmulti" and len(parts) > 1 else None


def faults(path: Path) -> list[str]:
    """Lists the imports of a file of tfmulti that its place forbids."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    own = parts[1]
    package = ".".join(parts[:-1])
    found = []
    for name in imports(path.read_text(), package):
        used = member(name)
        heavy = name.split(".")[0] in HEAVY
        if heavy and own not in RUNTIME:
            found.append(f"{name}: no TensorFlow on this side")
        if name.split(".")[0] in ("tfmulti_models", "tfmulti_experiments"):
            found.append(f"{name}: found through entry points only")
        if used is None or used == own:
            continue
        if own == "__init__":
            if used not in ROOT_IMPORTS:
                found.append(f"{name}: not for the root package")
        elif LEVEL.get(used, -1) >= LEVEL[own]:
            found.append(f"{name}: row {LEVEL[used]} from row {LEVEL[own]}")
    return found


TOOLKIT = sorted((ROOT / "tfmulti").rglob("*.py"))
TOOLKIT_IDS = [str(path.relative_to(ROOT)) for path in TOOLKIT]


@pytest.mark.parametrize("path", TOOLKIT, ids=TOOLKIT_IDS)
def test_imports_point_down(path):
    assert faults(path) == []


def test_every_member_has_a_row():
    members = {
        path.stem if path.suffix else path.name
        for path in (ROOT / "tfmulti").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert members - {"__init__"} <= set(LEVEL)


@pytest.mark.parametrize("folder", BESIDE)
def test_the_folders_beside_stand_alone(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    for path in files:
        for name in imports(path.read_text(), f"tfmulti_{folder}"):
            top = name.split(".")[0]
            used = member(name)
            if top == "tfmulti":
                assert used in BESIDE[folder], f"{path}: {name}"
            if folder == "experiments":
                assert top not in HEAVY, f"{path}: {name}"
                assert top != "tfmulti_models", f"{path}: {name}"
            else:
                assert top != "tfmulti_experiments", f"{path}: {name}"


@pytest.mark.parametrize(
    ("where", "source", "count"),
    [
        ("launch/x.py", "from tfmulti.cluster import resolve", 0),
        ("launch/x.py", "from tfmulti import errors", 0),
        ("launch/x.py", "from tfmulti.launch import job", 0),
        ("launch/x.py", "from . import job", 0),
        ("launch/x.py", "from .. import train", 1),
        ("launch/x.py", "from ..train import x", 1),
        ("launch/x.py", "import tfmulti.train.worker", 1),
        ("launch/x.py", "from tfmulti.strategy import init", 1),
        ("launch/x.py", "def f():\n    import tensorflow as tf", 1),
        ("launch/x.py", "def f():\n    from tfmulti import run", 1),
        ("keras3/x.py", "import tensorflow", 0),
        ("keras3/x.py", "from tfmulti.config import Experiment", 1),
        ("train/x.py", "import tfmulti_models", 1),
        ("run.py", "from tfmulti import cli", 1),
        ("__init__.py", "from tfmulti.launch import run", 1),
        ("__init__.py", "from tfmulti.version import VERSION", 0),
    ],
)
def test_the_check_sees_what_it_should(
    tmp_path, monkeypatch, where, source, count
):
    """The rules above, tried on made-up files."""
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "tfmulti" / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert len(faults(path)) == count
