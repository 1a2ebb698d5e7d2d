"""A process that runs programs in sequence, each into a file of its own.

    python -m tests.equivalence.worker KIND REPLICAS TASK

The task is a JSON file: names of the programs, a folder for the results and
one for the programs' own files. A result is NAME.npz, a failure NAME.txt.
With several workers a failure ends the process, since the others may stand
somewhere else by now.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

SEED = 7
# A file that says that the process has its strategy.
READY = "ready"


def main(kind: str, replicas: int, task_file: str) -> int:
    """Runs the task's programs; gives the exit code."""
    task = json.loads(Path(task_file).read_text())
    strategy = _strategy(kind, replicas)
    from tests.equivalence.programs import all_programs

    table = {program.name: program for program in all_programs()}
    Path(task["results"], READY).touch()
    for name in task["names"]:
        folder = Path(task["scratch"], file_name(name))
        folder.mkdir(parents=True, exist_ok=True)
        out = Path(task["results"], file_name(name))
        done = _run(table[name], strategy, folder, out)
        if not done and kind == "multiworker":
            return 3
    return 0


def file_name(name: str) -> str:
    """Gives a program's name as the name of a file."""
    return name.replace("/", "__").replace(" ", "_")


def _strategy(kind: str, replicas: int) -> Any:
    if kind == "one":
        return None
    from tfmulti.strategy.init import init

    return init(kind, replicas=replicas)


def _run(program: Any, strategy: Any, folder: Path, out: Path) -> bool:
    import keras

    from tests.equivalence.program import Place

    keras.utils.set_random_seed(SEED)
    before_s, before_cpu_s = time.monotonic(), time.process_time()
    try:
        arrays = program.run(Place(strategy=strategy, folder=folder))
    except Exception:  # noqa: BLE001 - whatever it is, it is this row
        _named(out, ".txt").write_text(traceback.format_exc())
        return False
    arrays["seconds"] = np.asarray(time.monotonic() - before_s)
    arrays["cpu_seconds"] = np.asarray(time.process_time() - before_cpu_s)
    # Renamed when it is whole: who waits for it never reads a part.
    partial = _named(out, ".partial.npz")
    np.savez(partial, **arrays)
    os.replace(partial, _named(out, ".npz"))
    return True


def _named(out: Path, ending: str) -> Path:
    return out.with_name(out.name + ending)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
