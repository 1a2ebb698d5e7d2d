"""A script runs as `python` itself runs it: same output, same exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = """
import sys
from tfmulti.train.script import run_script
kind, name, *argv = sys.argv[1:]
known = lambda e: "do it so" if "misuse" in str(e) else None
sys.exit(run_script(**{kind: name}, argv=argv, translate=known))
"""

SCRIPTS = {
    "plain": "print('hello')",
    "argv": "import sys; print(sys.argv)",
    "main": (
        "import __main__, sys\n"
        "print(__name__, __file__, __main__.__dict__ is globals())\n"
        "print(__spec__, __package__, sys.modules['__main__'].__doc__)"
    ),
    "neighbour": "import helper_beside; print(helper_beside.VALUE)",
    "exit_number": "import sys; sys.exit(7)",
    "exit_none": "import sys; sys.exit()",
    "exit_text": "import sys; sys.exit('no luck')",
    "error": "def f():\n    raise ValueError('mine')\nf()",
    "chained": "try:\n    1 / 0\nexcept Exception as e:\n"
    "    raise KeyError('later') from e",
    "syntax": "print('a'\nx = = 2",
    "atexit": (
        "import atexit\nVALUE = 5\n"
        "def last():\n"
        "    import __main__\n"
        "    print('last words', VALUE, __main__.VALUE)\n"
        "atexit.register(last)"
    ),
    "annotations": (
        "def f(x: print('evaluated')): pass\nprint(f.__annotations__)"
    ),
    "hook": (
        "import sys\n"
        "sys.excepthook = lambda *a: print('hook', a[1])\n"
        "raise ValueError('mine')"
    ),
    "interrupt": "raise KeyboardInterrupt",
    "stdin": "print(input())",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "helper_beside.py").write_text("VALUE = 'beside'")
    for name, text in SCRIPTS.items():
        (folder / f"{name}.py").write_text(text)
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text(
        "import sys\nfrom . import other\n"
        "print(__name__, __package__, sys.argv, other.VALUE)\nsys.exit(3)"
    )
    (package / "other.py").write_text("VALUE = 'relative'")
    return folder


def run(folder: Path, *args: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        input="typed\n",
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_run_as_python_runs_it(folder: Path, name: str):
    args = (f"{name}.py", "--its", "own", "--flags=1")
    code, out, err = run(folder, *args)
    ours = run(folder, "-c", RUNNER, "path", *args)
    # A process that died of Ctrl-C has the code 128 + 2 in a shell.
    # Its traceback would tell where TensorFlow was at that moment.
    if name == "interrupt":
        assert ours == (130, "", "")
    else:
        assert ours == (code, out, err)


def test_a_script_elsewhere_finds_its_neighbours(folder: Path, tmp_path: Path):
    ours = run(tmp_path, "-c", RUNNER, "path", str(folder / "neighbour.py"))
    assert ours == (0, "beside\n", "")


def test_a_module_is_run_as_python_runs_it(folder: Path):
    python = run(folder, "-m", "package.part", "--flag")
    ours = run(folder, "-c", RUNNER, "module", "package.part", "--flag")
    assert ours == python
    assert ours[0] == 3 and "relative" in ours[1]


def test_known_misuse_is_one_message(folder: Path):
    (folder / "misuse.py").write_text("raise ValueError('misuse of it')")
    ours = run(folder, "-c", RUNNER, "path", "misuse.py")
    assert ours == (1, "", "tfmulti: do it so\n")
