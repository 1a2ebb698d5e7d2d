"""Starts the processes of a topology and collects what programs leave.

    run_topology(topology, names) ──► processes ──► NAME.npz / NAME.txt
            ▲                                            │
            └── a program that hangs or kills its process fails, and new
                processes go on behind it

Every wait has a deadline and no process outlives the call.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.equivalence.program import Arrays
from tests.equivalence.worker import READY, file_name

# A process may be silent so long, at its start and in any one program.
START_S = 120.0
# TensorFlow may take a minute to delete an iterator (see BUILD_NOTES.md).
PROGRAM_S = 300.0
# How long the others have to notice that a worker has failed.
GRACE_S = 5.0
# A start may fail for a reason of the moment, such as a port just taken.
STARTS = 2
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Topology:
    """How many replicas, and in how many processes.

    Attributes:
        kind: "one", "mirrored" or "multiworker".
        replicas: Replicas of each process.
        workers: Processes.
    """

    kind: str
    replicas: int = 1
    workers: int = 1


TOPOLOGIES = {
    "one": Topology(kind="one"),
    "mirrored2": Topology(kind="mirrored", replicas=2),
    "mirrored3": Topology(kind="mirrored", replicas=3),
    "mirrored4": Topology(kind="mirrored", replicas=4),
    "workers2x1": Topology(kind="multiworker", workers=2),
    "workers2x2": Topology(kind="multiworker", replicas=2, workers=2),
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one program left in one topology.

    Attributes:
        results: The arrays of each worker; empty after a failure.
        failure: What went wrong, or "".
        died: Whether the processes crashed or stood still in it.
        seconds: How long it took.
        cpu_seconds: Processor time of all workers together.
    """

    results: tuple[Arrays, ...] = ()
    failure: str = ""
    died: bool = False
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def run_topology(topology: str, names: Sequence[str]) -> dict[str, Outcome]:
    """Runs programs in one topology.

    Args:
        topology: A key of `TOPOLOGIES`.
        names: The programs' names.

    Returns:
        The outcome of each program.
    """
    chosen = TOPOLOGIES[topology]
    outcomes: dict[str, Outcome] = {}
    died: set[str] = set()
    left = list(names)
    failed_starts = 0
    while left:
        with tempfile.TemporaryDirectory() as folder:
            found = _run_once(chosen, left, Path(folder))
        if isinstance(found, str):
            failed_starts += 1
            if failed_starts < STARTS:
                continue
            found = {name: Outcome(failure=found) for name in left}
        # TensorFlow's own crashes are rare: once is said, twice is a failure.
        new = {n for n, o in found.items() if o.died} - died
        for name in new:
            print(f"again on {topology}: {name}\n{found.pop(name).failure}")
        died |= new
        outcomes |= found
        left = [name for name in left if name not in found]
    return outcomes


def _run_once(
    topology: Topology, names: Sequence[str], folder: Path
) -> dict[str, Outcome] | str:
    """Runs programs until all are done or one stops the processes.

    Returns:
        What was done; or why the processes could not start.
    """
    tasks = [_write_task(folder, i, names) for i in range(topology.workers)]
    with _processes(topology, tasks, folder) as processes:
        end = _wait(processes, folder)
    if len(list(folder.glob(f"results*/{READY}"))) < topology.workers:
        return f"{_log(folder)}\nnever started: {end}"
    found: dict[str, Outcome] = {}
    for name in names:
        outcome = _collect(folder, topology.workers, name)
        if outcome is None:
            outcome = Outcome(failure=f"never ended: {end}", died=True)
            stops = True
        else:
            stops = topology.kind == "multiworker"
        found[name] = outcome
        if outcome.failure and stops:
            text = f"{_log(folder)}\n{end}\n{outcome.failure}"
            found[name] = dataclasses.replace(outcome, failure=text)
            break
    return found


def _write_task(folder: Path, index: int, names: Sequence[str]) -> Path:
    results = folder / f"results{index}"
    results.mkdir()
    task = folder / f"task{index}.json"
    task.write_text(
        json.dumps(
            {
                "names": list(names),
                "results": str(results),
                "scratch": str(folder / "scratch"),
            }
        )
    )
    return task


@contextlib.contextmanager
def _processes(
    topology: Topology, tasks: Sequence[Path], folder: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for index, env in enumerate(_environments(topology)):
            with (folder / f"{index}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        [
                            sys.executable,
                            "-Xfaulthandler",
                            "-m",
                            "tests.equivalence.worker",
                            topology.kind,
                            str(topology.replicas),
                            str(tasks[index]),
                        ],
                        env=env,
                        cwd=ROOT,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                )
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def _environments(topology: Topology) -> list[dict[str, str]]:
    env = dict(os.environ) | {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
        "GRPC_VERBOSITY": "NONE",
        # One order of summation, whatever the batch's size.
        "TF_ENABLE_ONEDNN_OPTS": "0",
    }
    env.pop("TF_CONFIG", None)
    if topology.kind != "multiworker":
        return [env]
    workers = [f"127.0.0.1:{port}" for port in _free_ports(topology.workers)]
    return [
        env
        | {
            "TF_CONFIG": json.dumps(
                {
                    "cluster": {"worker": workers},
                    "task": {"type": "worker", "index": index},
                }
            )
        }
        for index in range(topology.workers)
    ]


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _wait(processes: Sequence[subprocess.Popen[bytes]], folder: Path) -> str:
    """Waits until all have ended or one is stuck; says how it ended."""
    seen, since_s, allowed_s = 0, time.monotonic(), START_S
    while True:
        codes = [process.poll() for process in processes]
        if all(code is not None for code in codes):
            return f"exit codes {codes}"
        done = len(list(folder.glob("results*/*")))
        if done != seen:
            seen, since_s, allowed_s = done, time.monotonic(), PROGRAM_S
        elif any(codes):
            allowed_s = min(allowed_s, GRACE_S)
        if time.monotonic() - since_s > allowed_s:
            return f"stuck; exit codes {codes}"
        time.sleep(0.05)


def _collect(folder: Path, workers: int, name: str) -> Outcome | None:
    """Reads what all workers left of a program; None if it never ended."""
    results, failures = [], []
    for index in range(workers):
        base = folder / f"results{index}" / file_name(name)
        failure = base.with_name(base.name + ".txt")
        if failure.exists():
            failures.append(f"worker {index}: {failure.read_text()}")
        arrays = base.with_name(base.name + ".npz")
        if arrays.exists():
            with np.load(arrays) as stored:
                results.append(dict(stored))
    if failures:
        return Outcome(failure="\n".join(failures))
    if len(results) < workers:
        return None
    seconds = max(float(r.pop("seconds")) for r in results)
    cpu_seconds = sum(float(r.pop("cpu_seconds")) for r in results)
    return Outcome(
        results=tuple(results), seconds=seconds, cpu_seconds=cpu_seconds
    )


def _log(folder: Path) -> str:
    texts = []
    for path in sorted(folder.glob("*.log")):
        # Python's list of extension modules would push its stacks out.
        lines = path.read_text(errors="replace").splitlines()
        kept = [line for line in lines if "Extension modules:" not in line]
        texts.append(f"{path.name}: " + "\n".join(kept)[-3000:])
    return "\n".join(texts)
