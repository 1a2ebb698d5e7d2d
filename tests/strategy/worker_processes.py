"""Starts several real worker processes and gives what each of them reports.

A worker's program is text; it prints one line `RESULT <json>`. Every wait has
a deadline, and no process outlives the call.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PREAMBLE = """
import json, os
def report(**values):
    print("RESULT " + json.dumps(values), flush=True)
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run_workers(
    program: str, count: int, timeout_s: float = 180
) -> list[dict[str, Any]]:
    """Runs `program` in `count` workers of one cluster.

    Returns:
        What each worker reported, in order.
    """
    workers = [f"127.0.0.1:{port}" for port in free_ports(count)]
    configs = [
        json.dumps(
            {
                "cluster": {"worker": workers},
                "task": {"type": "worker", "index": index},
            }
        )
        for index in range(count)
    ]
    return _run(program, [{"TF_CONFIG": c} for c in configs], timeout_s)


def run_alone(program: str, timeout_s: float = 120, **env: str) -> Any:
    """Runs `program` in one process of its own; gives what it reported."""
    return _run(program, [env], timeout_s)[0]


def _run(
    program: str, envs: list[dict[str, str]], timeout_s: float
) -> list[dict[str, Any]]:
    deadline_s = time.monotonic() + timeout_s
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        try:
            for index, env in enumerate(envs):
                log = Path(folder, f"{index}.log")
                with log.open("w") as output:
                    processes.append(
                        subprocess.Popen(
                            [sys.executable, "-c", PREAMBLE + program],
                            env=_environment(env),
                            stdout=output,
                            stderr=subprocess.STDOUT,
                            cwd=folder,
                        )
                    )
            for process in processes:
                process.wait(max(0.1, deadline_s - time.monotonic()))
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        texts = [
            Path(folder, f"{index}.log").read_text()
            for index in range(len(envs))
        ]
    for process, text in zip(processes, texts, strict=True):
        assert process.returncode == 0, text[-4000:]
    return [_result(text) for text in texts]


def _environment(extra: dict[str, str]) -> dict[str, str]:
    env = dict(os.environ)
    env.pop("TF_CONFIG", None)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    return env | quiet | extra


def _result(text: str) -> dict[str, Any]:
    lines = [li for li in text.splitlines() if li.startswith("RESULT ")]
    assert len(lines) == 1, text[-4000:]
    return json.loads(lines[0].removeprefix("RESULT ")) | {"log": text}
