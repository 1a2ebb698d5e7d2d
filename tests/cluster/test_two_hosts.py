"""Workers on two hosts, each a network namespace with an address of its own.

Between them is one cable, which can be cut.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from tfmulti import errors

pytestmark = pytest.mark.slow

WORKER = (sys.executable, "-m", "tests.cluster.rendezvous_worker")
WORKERS = ("10.88.0.1:2222", "10.88.0.2:2222")


def _ip(*words: str) -> None:
    subprocess.run(
        ["ip", *words], check=True, capture_output=True, timeout=30
    )


@pytest.fixture
def hosts():
    """The names of two namespaces with a cable between them."""
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed (Debian: iproute2)")
    if os.geteuid() != 0:
        pytest.skip("network namespaces have to be made as root")
    names = [f"tfmulti-{os.getpid()}-{i}" for i in (1, 2)]
    with contextlib.ExitStack() as stack:
        for name in names:
            try:
                _ip("netns", "add", name)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"no network namespaces: {error.stderr!r}")
            stack.callback(_ip, "netns", "del", name)
        _ip("link", "add", "eth0", "netns", names[0], "type", "veth",
            "peer", "name", "eth0", "netns", names[1])  # fmt: skip
        for name, address in zip(names, WORKERS, strict=True):
            host = address.split(":")[0]
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "addr", "add", f"{host}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
        yield names


@contextlib.contextmanager
def started(host: str, index: int, limit_s: float):
    given = {"workers": WORKERS, "index": index, "limit_s": limit_s}
    process = subprocess.Popen(
        ["ip", "netns", "exec", host, *WORKER, json.dumps(given)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def outcome(process) -> dict:
    out, _ = process.communicate(timeout=60)
    return json.loads(out) | {"code": process.returncode}


def listening(host: str) -> str:
    return subprocess.run(
        ["ip", "netns", "exec", host, "cat", "/proc/net/tcp"],
        capture_output=True,
        text=True,
        timeout=30,
    ).stdout


def test_each_listens_on_its_own_address_alone(hosts):
    wanted = "0100580A:08AE 00000000:0000 0A"  # 10.88.0.1:2222, LISTEN
    with started(hosts[0], 0, 30.0) as first:
        deadline_s = time.monotonic() + 20
        while wanted not in listening(hosts[0]):
            assert time.monotonic() < deadline_s, listening(hosts[0])
            time.sleep(0.1)
        assert listening(hosts[0]).count(" 0A ") == 1
        with started(hosts[1], 1, 30.0) as second:
            assert [outcome(p)["code"] for p in (first, second)] == [0, 0]


def test_a_cut_cable_is_told_from_a_worker_that_is_not_there(hosts):
    _ip("-n", hosts[1], "addr", "flush", "dev", "eth0")
    with started(hosts[0], 0, 9.0) as first:
        ended = outcome(first)
    assert ended["code"] == errors.NO_RENDEZVOUS
    assert f"worker 1 at {WORKERS[1]} (no " in ended["error"]
    assert "nobody listens" not in ended["error"]


def test_a_cable_that_is_mended_in_time(hosts):
    _ip("-n", hosts[1], "link", "set", "eth0", "down")
    with (
        started(hosts[0], 0, 40.0) as first,
        started(hosts[1], 1, 40.0) as second,
    ):
        time.sleep(4)
        _ip("-n", hosts[1], "link", "set", "eth0", "up")
        assert [outcome(p)["code"] for p in (first, second)] == [0, 0]
