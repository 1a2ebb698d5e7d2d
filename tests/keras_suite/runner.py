"""Runs files of Keras's tests in processes of their own.

    run_suite(suite, mode) ──► pytest process ──► a JSON line for each test
            ▲                                         │
            └── a test that hangs or kills the process has failed, and a new
                process goes on with the tests behind it

Every wait has a deadline and no process outlives the call.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.keras_suite import files as files_lib

# pytest's own limit for a test; a test that does not even heed it is ended
# together with its process.
TEST_S = 240
SILENT_S = 300.0
POLL_S = 0.5
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one test ended.

    Attributes:
        kind: "passed", "failed" or "skipped".
        text: The traceback, or why it was skipped.
    """

    kind: str
    text: str = ""


@dataclass(kw_only=True)
class Result:
    """What one suite gave in one mode.

    Attributes:
        outcomes: Of each test, by its id.
        uncollected: File -> why none of its tests could be run.
        seconds: How long it took.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    uncollected: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def run_files(
    files: Sequence[str], mode: str, keyword: str = ""
) -> Result:
    """Runs test files in one process, or several where one dies.

    Args:
        files: Names relative to `keras/src`.
        mode: One of `files.MODES`.
        keyword: As pytest's `-k`.
    """
    began_s = time.monotonic()
    result = Result()
    while True:
        died_in = _run_once(files, mode, keyword, result)
        if died_in is None:
            break
        result.outcomes[died_in] = Outcome(
            kind="failed", text="the process died or hung in this test"
        )
    result.seconds = time.monotonic() - began_s
    return result


def _run_once(
    files: Sequence[str], mode: str, keyword: str, result: Result
) -> str | None:
    """Runs what has no outcome yet; gives the test that ended the process.

    Raises:
        RuntimeError: pytest did not get as far as a test.
    """
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "outcomes.jsonl")
        lines.touch()
        command = _command(files, mode, keyword, lines)
        for name in result.outcomes:
            command += ["--deselect", name]
        log = Path(folder, "log")
        with _process(command, folder, log) as process:
            _wait(process, lines)
        died_in = _read(lines, result)
        if died_in is None and process.returncode not in (0, 1, 2, 5):
            raise RuntimeError(
                f"pytest ended with {process.returncode} outside of a test:\n"
                + log.read_text(errors="replace")[-4000:]
            )
        return died_in


def _command(
    files: Sequence[str], mode: str, keyword: str, lines: Path
) -> list[str]:
    root = files_lib.keras_root()
    return [
        sys.executable,
        *("-m", "pytest", "-q", "--tb=short"),
        # Neither this project's settings nor files beside Keras's tests.
        *("-c", os.devnull, "--rootdir", str(root)),
        *("-p", "no:cacheprovider", "--continue-on-collection-errors"),
        *("-p", "tests.keras_suite.plugin"),
        *("--suite-mode", mode, "--suite-outcomes", str(lines)),
        *("--timeout", str(TEST_S), "-k", keyword),
        *(str(root / "keras" / "src" / name) for name in files),
    ]


@contextlib.contextmanager
def _process(
    command: Sequence[str], folder: str, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    env = dict(os.environ) | {
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    env.pop("TF_CONFIG", None)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=env,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], lines: Path) -> None:
    """Waits until the process has ended or was silent for too long."""
    size, since_s = 0, time.monotonic()
    while process.poll() is None:
        time.sleep(POLL_S)
        if lines.stat().st_size != size:
            size, since_s = lines.stat().st_size, time.monotonic()
        elif time.monotonic() - since_s > SILENT_S:
            return


def _read(lines: Path, result: Result) -> str | None:
    """Takes up the outcomes; gives the test that has none."""
    begun: str | None = None
    for line in lines.read_text().splitlines():
        entry: dict[str, Any] = json.loads(line)
        if "file" in entry:
            result.uncollected[entry["file"]] = entry["text"]
        elif "begun" in entry:
            begun = entry["id"]
        else:
            begun = None
            result.outcomes[entry["id"]] = Outcome(
                kind=entry["outcome"], text=entry["text"]
            )
    return begun
