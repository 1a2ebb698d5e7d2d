"""Lint and types, as the house form asks for."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ["tfmulti", "models", "experiments", "tests", "examples"]
RULES = "E,F,W,I,B,UP"


def _passes(*command: str) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_lint() -> None:
    _passes(
        "ruff",
        "check",
        "--no-cache",
        "--line-length=80",
        f"--select={RULES}",
        *FOLDERS,
    )


def test_types() -> None:
    _passes("mypy", "tfmulti", "models", "experiments")


@pytest.mark.parametrize("folder", ["tfmulti", "models", "experiments"])
def test_every_module_opens_with_its_picture(folder: str) -> None:
    bare = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not re.match(r'("""|\'\'\')', path.read_text() or '"""')
    ]
    assert not bare


def test_the_package_list_is_complete() -> None:
    listed = (ROOT / "setup.cfg").read_text()
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "tfmulti").rglob("__init__.py")
    }
    assert not [name for name in found if f"    {name}\n" not in listed]
