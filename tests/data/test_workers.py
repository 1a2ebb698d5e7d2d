"""Two real worker processes read disjoint parts of the same batches."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from tfmulti.data.order import Order

pytestmark = pytest.mark.workers

_WORKER = """
import json, sys
import numpy as np
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
from tfmulti import data
from tfmulti.data.arrays import ArraySource
read = data.distributed(
    ArraySource(np.arange(23)), strategy, global_batch_size=5, seed=4, epochs=2
)
steps = [
    [p.numpy().tolist() for p in strategy.experimental_local_results(x)]
    for x in read
]
print("READ", json.dumps(steps))
"""


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _start(index: int, addresses: list[str]) -> subprocess.Popen:
    task = {
        "cluster": {"worker": addresses},
        "task": {"type": "worker", "index": index},
    }
    return subprocess.Popen(
        [sys.executable, "-c", _WORKER],
        env=os.environ | {"TF_CONFIG": json.dumps(task)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_workers_read_the_order_together():
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(2)]
    workers = [_start(i, addresses) for i in range(2)]
    try:
        outputs = [worker.communicate(timeout=180) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    read = []
    for output, errors in outputs:
        lines = [x for x in output.splitlines() if x.startswith("READ ")]
        assert lines, errors[-3000:]
        read.append(json.loads(lines[0].removeprefix("READ ")))
    order = Order(example_count=23, global_batch_size=5, seed=4)
    assert [len(steps) for steps in read] == [10, 10]
    for step, parts in enumerate(zip(*read, strict=True)):
        for r, (rows,) in enumerate(parts):
            np.testing.assert_array_equal(rows, order.indices(step, r, 2))
