"""Is the script that a person named there? Asked before anything starts.

A module is searched for as `python -m` would, but nothing of it is imported:
its package may load TensorFlow, which is the worker's to do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec

from tfmulti.errors import UsageError
from tfmulti.launch.job import Script


def check_script(script: Script, path: Sequence[str] | None = None) -> None:
    """Checks that a script can be run.

    Args:
        script: The script.
        path: Where to search for modules; None: the working directory and
            then where this process searches.

    Raises:
        UsageError: There is no such file or module, or it is none to run.
    """
    if script.module is not None:
        _check_module(script.module, path or [os.getcwd(), *sys.path])
        return
    assert script.path is not None
    if not os.path.exists(script.path):
        _refuse(script.path, "which does not exist")
    if os.path.isdir(script.path):
        _refuse(script.path, "which is a folder")
    if not os.path.isfile(script.path):
        _refuse(script.path, "which is a device or a pipe, not a file")
    if not os.access(script.path, os.R_OK):
        _refuse(script.path, "which may not be read")


def _check_module(name: str, path: Sequence[str]) -> None:
    spec = _find(name, path)
    if spec is not None and spec.submodule_search_locations is not None:
        # A package runs its __main__, as with python -m.
        spec = _find(f"{name}.__main__", path)
    if spec is None or spec.origin is None:
        raise UsageError(
            received=f"-m {name!r}, a module that is not found",
            allowed="a module, or a package with a __main__",
            remedy="Correct its name, or install its package.",
        )


def _find(name: str, path: Sequence[str]) -> ModuleSpec | None:
    """Finds a module by its full name without importing its package."""
    spec = None
    searched: Sequence[str] | None = path
    parts = name.split(".")
    if not all(parts):
        return None
    for depth in range(1, len(parts) + 1):
        if searched is None:
            return None
        spec = _ask(".".join(parts[:depth]), searched, top=depth == 1)
        if spec is None:
            return None
        searched = spec.submodule_search_locations
    return spec


def _ask(name: str, path: Sequence[str], top: bool) -> ModuleSpec | None:
    # An editable install finds its packages by a finder of its own, which
    # expects no path for a top-level name: so both are tried.
    for where in (path, None) if top else (path,):
        for finder in sys.meta_path:
            spec = finder.find_spec(name, where)
            if spec is not None:
                return spec
    return None


def _refuse(path: str, why: str) -> None:
    raise UsageError(
        received=f"the script {path!r}, {why}",
        allowed="the path of a Python file",
        remedy="Correct the path. Flags of tfmulti stand before it, the "
        "script's own after it.",
    )
