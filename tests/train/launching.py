"""Starts `python -m tfmulti.run` as a person does, with a deadline."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
DEADLINE_S = 240


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    def line(self, start: str) -> str:
        """The one line of its output that starts so."""
        (found,) = [
            line for line in self.out.splitlines() if line.startswith(start)
        ]
        return found


def program(name: str) -> str:
    """The path of a program for tests."""
    return str(PROGRAMS / f"{name}.py")


def python(*args: str, folder: Path) -> Done:
    """Runs Python, with nothing of the tests' own environment added."""
    own = ("TF_CPP_MIN_LOG_LEVEL", "GRPC_VERBOSITY")
    env = {k: v for k, v in os.environ.items() if k not in own}
    done = subprocess.run(
        [sys.executable, *args],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def tfmulti_run(*args: str, folder: Path) -> Done:
    """Runs `python -m tfmulti.run` in a folder."""
    return python("-m", "tfmulti.run", *args, folder=folder)
