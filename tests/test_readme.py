"""Every command and every Python example of the README runs."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
INSTALL = 'python -m pip install -q -e ".[test]" && '


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def commands() -> list[str]:
    """Lists the README's commands, without the installation before them."""
    lines = "".join(_blocks("console")).splitlines()
    assert all(line.startswith("$ ") for line in lines)
    found = [line[2:].removeprefix(INSTALL) for line in lines]
    # The tests run inside this one.
    return [c for c in found if c != "python -m pytest"]


def _run(command: list[str], folder: pathlib.Path) -> str:
    folder_of_python = str(pathlib.Path(sys.executable).parent)
    path = os.pathsep.join([folder_of_python, os.environ["PATH"]])
    finished = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = finished.stdout + finished.stderr
    assert finished.returncode == 0, said
    return said


def test_the_readme_names_both_commands() -> None:
    lines = "".join(_blocks("console")).splitlines()
    assert lines[0] == f"$ {INSTALL}python -m tfmulti.run --strategy mirrored"
    assert lines[1] == f"$ {INSTALL}python -m pytest"


@pytest.mark.slow
@pytest.mark.workers
@pytest.mark.parametrize("command", commands())
def test_command(command: str, tmp_path: pathlib.Path) -> None:
    command = command.replace("examples/", f"{ROOT}/examples/")
    said = _run(["bash", "-c", command], tmp_path)
    assert "Traceback" not in said
    if command == "python -m tfmulti.run --strategy mirrored":
        accuracy = float(re.findall(r"result +accuracy ([\d.]+) %", said)[0])
        assert accuracy >= 97


@pytest.mark.slow
@pytest.mark.parametrize("code", _blocks("python"))
def test_python_example(code: str, tmp_path: pathlib.Path) -> None:
    said = _run([sys.executable, "-c", code], tmp_path)
    assert ("mae" if "fit(" in code else "only the chief") in said


def test_files_that_the_readme_names_exist() -> None:
    for name in re.findall(r"\]\((docs/[^)]+)\)", TEXT):
        assert (ROOT / name).is_file(), name
