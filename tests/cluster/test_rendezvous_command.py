"""The command ends with the rendezvous's code and words, before TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from tests.cluster.test_rendezvous import addresses
from tfmulti import errors


def start(folder, index, workers, *flags):
    task = {"type": "worker", "index": index}
    config = {"cluster": {"worker": workers}, "task": task}
    return subprocess.Popen(
        [sys.executable, "-m", "tfmulti.run", "--run_dir", f"r{index}",
         "--rendezvous_timeout_s", "3", *flags],
        cwd=folder,
        env=os.environ
        | {"TF_CONFIG": json.dumps(config), "CUDA_VISIBLE_DEVICES": "-1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def ended(process):
    try:
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert "Traceback" not in told
    return process.returncode, told.splitlines()[-1]


def test_a_worker_that_does_not_come(tmp_path):
    workers = addresses(2)
    begun = time.monotonic()
    code, line = ended(start(tmp_path, 1, workers))
    assert code == errors.NO_RENDEZVOUS
    assert f"worker 0 at {workers[0]}" in line
    # Limit, chief's answer and two starts of Python; TensorFlow takes longer.
    assert time.monotonic() - begun < 3 + 5 + 6


def test_another_setting(tmp_path):
    workers = addresses(2)
    processes = [
        start(tmp_path, 0, workers, "--epochs", "2"),
        start(tmp_path, 1, workers, "--epochs", "3"),
    ]
    outcomes = [ended(process) for process in processes]
    assert outcomes[0] == outcomes[1]
    code, line = outcomes[0]
    assert code == errors.NO_RENDEZVOUS
    assert "epochs is 2 on worker 0 and 3 on worker 1" in line


@pytest.mark.parametrize("limit", ["0", "-1", "soon", "inf"])
def test_a_limit_that_is_none(tmp_path, limit):
    code, line = ended(
        start(tmp_path, 0, addresses(2), "--rendezvous_timeout_s", limit)
    )
    assert code == errors.BAD_USAGE
    assert "rendezvous" in line
