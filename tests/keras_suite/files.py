"""Which of Keras's test files belong to which suite.

A suite is a folder of `keras/src`, or some files of one. Those in
`STRATEGY_SUITES` train models, so that they are run under a strategy too;
`distribute` makes strategies of its own.
"""

from __future__ import annotations

import fnmatch
import importlib.util
from pathlib import Path

MODES = ("stock", "layer", "mirrored", "stock_mirrored")

SUITES: dict[str, tuple[str, ...]] = {
    "trainers": ("trainers/**/*_test.py",),
    "callbacks": ("callbacks/*_test.py",),
    "optimizers": ("optimizers/**/*_test.py",),
    "losses": ("losses/*_test.py",),
    "metrics": ("metrics/*_test.py",),
    "models": ("models/*_test.py",),
    "normalization": ("layers/normalization/*_test.py",),
    "regularization": ("layers/regularization/*_test.py",),
    "preprocessing": ("layers/preprocessing/**/*_test.py",),
    "distribute": ("backend/tensorflow/*distribute_test.py",),
}
STRATEGY_SUITES = ("trainers", "callbacks", "metrics")


def keras_root() -> Path:
    """Gives the folder that the package `keras` lies in."""
    spec = importlib.util.find_spec("keras")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parents[1]


def files_of(suite: str, only: str = "*") -> list[str]:
    """Lists a suite's files, relative to `keras/src`, sorted.

    Args:
        suite: A key of `SUITES`.
        only: Comma-separated patterns of such names.
    """
    source = keras_root() / "keras" / "src"
    found = {
        str(path.relative_to(source))
        for pattern in SUITES[suite]
        for path in source.glob(pattern)
    }
    return sorted(
        name
        for name in found
        if any(fnmatch.fnmatch(name, p) for p in only.split(","))
    )


def runs_in(suite: str, mode: str) -> bool:
    """Whether a suite is run in a mode."""
    return not mode.endswith("mirrored") or suite in STRATEGY_SUITES
