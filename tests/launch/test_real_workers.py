"""The launcher with real TensorFlow workers, which must find one another.

Each worker reduces a number over all of them: a right sum proves that ports,
addresses and environment are right.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfmulti.launch import held_ports

pytestmark = [pytest.mark.workers, pytest.mark.slow]

DEADLINE_S = 240.0

PROGRAM = """
import sys
import tensorflow as tf

strategy = tf.distribute.get_strategy()

@tf.function
def total():
    def step():
        context = tf.distribute.get_replica_context()
        mine = tf.cast(context.replica_id_in_sync_group + 1, tf.float32)
        return context.all_reduce("SUM", mine)
    return strategy.run(step)

values = strategy.experimental_local_results(total())
print("total", [int(value) for value in values], sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def script(tmp_path) -> Path:
    path = tmp_path / "reduce.py"
    path.write_text(PROGRAM)
    return path


def launch(
    script: Path, flags: str, code: int, env: dict[str, str]
) -> subprocess.Popen[str]:
    clean = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
    return subprocess.Popen(
        [sys.executable, "-m", "tfmulti.run", *flags.split(), str(script)]
        + [str(code)],
        cwd=script.parent,
        env=clean | {"CUDA_VISIBLE_DEVICES": "-1"} | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        raise
    finally:
        if process.poll() is None:
            process.wait(30)


@pytest.mark.parametrize("code", [0, 5])
def test_two_workers_of_two_replicas_past_a_dead_proxy(script, code):
    """A proxy for web traffic must not come between the workers."""
    proxies = {
        name: "http://127.0.0.1:9"
        for name in ("http_proxy", "https_proxy", "grpc_proxy")
    }
    flags = "--strategy multiworker --workers 2 --replicas 2 --run_dir r"
    process = launch(script, flags, code, proxies)
    out, err = finish(process)
    assert process.returncode == code, err
    lines = sorted(line for line in out.splitlines() if "total" in line)
    assert lines == [
        f"[worker {index}] total [10, 10] ['{code}']" for index in (0, 1)
    ]
    for index in (0, 1):
        log = script.parent / "r" / "logs" / f"worker-{index}.log"
        assert "total [10, 10]" in log.read_text()


def test_two_launchers_join_by_tf_config(script):
    with held_ports(2) as ports:
        first, second = (f"127.0.0.1:{port}" for port in ports)
        cluster = {"chief": [first], "worker": [second]}
        processes = [
            launch(
                script,
                f"--run_dir r-{kind}",
                0,
                {
                    "TF_CONFIG": json.dumps(
                        {
                            "cluster": cluster,
                            "task": {"type": kind, "index": 0},
                        }
                    )
                },
            )
            for kind in cluster
        ]
        results = [finish(process) for process in processes]
    for process, (out, err) in zip(processes, results, strict=True):
        assert process.returncode == 0, err
        assert out == "total [3] ['0']\n"
