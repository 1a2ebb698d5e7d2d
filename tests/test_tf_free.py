"""The launch side works where TensorFlow and Keras cannot be imported.

A finder that refuses them stands first on `sys.meta_path` of a process of its
own. So a slip shows even where an import hides in a function.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tfmulti

ROOT = Path(tfmulti.__file__).parent

BLOCK = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in (
            "tensorflow", "keras", "tensorflow_datasets", "keras_hub", "jax",
            "torch",
        ):
            raise ImportError(f"{name} is blocked in this test")

sys.meta_path.insert(0, Refuse())
"""

FREE_PACKAGES = (
    "cluster",
    "communication",
    "diagnose",
    "hardware",
    "launch",
    "measure",
    "planner",
)
FREE_MODULES = (
    "tfmulti",
    "tfmulti.backend",
    "tfmulti.cli",
    "tfmulti.config",
    "tfmulti.console",
    "tfmulti.data",
    "tfmulti.data.bad_records",
    "tfmulti.data.counts",
    "tfmulti.data.order",
    "tfmulti.data.position",
    "tfmulti.data.spec",
    "tfmulti.doctor",
    "tfmulti.emulation",
    "tfmulti.errors",
    "tfmulti.quiet",
    "tfmulti.run",
    "tfmulti.units",
    "tfmulti.version",
)


def free_modules() -> list[str]:
    """Lists every module that must do without TensorFlow."""
    found = list(FREE_MODULES)
    for package in FREE_PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT.parent).with_suffix("").parts
            found.append(".".join(parts).removesuffix(".__init__"))
    return found


def blocked(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_modules_import(tmp_path):
    code = "import importlib\n" + "".join(
        f"importlib.import_module({name!r})\n" for name in free_modules()
    )
    done = blocked(code, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_block_blocks(tmp_path):
    done = blocked("import tfmulti; tfmulti.init", tmp_path)
    assert done.returncode != 0
    assert "is blocked in this test" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--list_experiments"],
        ["--dry_run"],
        ["--strategy", "multiworker", "--workers", "2", "--dry_run"],
        ["--dry_run", "-m", "json.tool"],
    ],
)
def test_the_command_answers(tmp_path, words):
    code = f"from tfmulti import run\nsys.exit(run.main({words!r}))"
    done = blocked(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_importing_the_library_starts_nothing(tmp_path):
    code = (
        "import os, threading\n"
        "before = dict(os.environ)\n"
        "import tfmulti, tfmulti.run, tfmulti.launch, tfmulti.data\n"
        "assert dict(os.environ) == before\n"
        "assert threading.active_count() == 1\n"
    )
    done = blocked(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
