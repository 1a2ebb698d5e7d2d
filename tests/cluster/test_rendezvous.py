"""Real processes on this host meet, or all end with the same words."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time

import pytest

from tfmulti import errors

WORKER = (sys.executable, "-m", "tests.cluster.rendezvous_worker")
DEADLINE_S = 60


def addresses(count: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in held]


class Workers:
    """The processes of one meeting, ended with the test."""

    def __init__(self, count: int, **common):
        self.workers = addresses(count)
        self.common = {"limit_s": 20.0, "workers": self.workers} | common
        self.processes: list[subprocess.Popen] = []

    def start(self, index: int, **own) -> None:
        given = self.common | {"index": index} | own
        self.processes.append(
            subprocess.Popen(
                [*WORKER, json.dumps(given)],
                stdout=subprocess.PIPE,
                text=True,
            )
        )

    def outcomes(self) -> list[dict]:
        found = []
        for process in self.processes:
            out, _ = process.communicate(timeout=DEADLINE_S)
            found.append(json.loads(out) | {"code": process.returncode})
        return found

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def meeting():
    with contextlib.ExitStack() as stack:

        def begin(count, **common):
            return stack.enter_context(
                contextlib.closing(Workers(count, **common))
            )

        yield begin


def agree_to_stop(outcomes, *words):
    assert {o["code"] for o in outcomes} == {errors.NO_RENDEZVOUS}
    assert len({o["error"] for o in outcomes}) == 1, outcomes
    for word in words:
        assert word in outcomes[0]["error"]
    assert "\n" not in outcomes[0]["error"]


@pytest.mark.parametrize("count", [2, 5])
def test_all_meet(meeting, count):
    group = meeting(count, facts={"keras": "3.15"}, token="secret")
    for index in reversed(range(count)):
        group.start(index)
    for outcome in group.outcomes():
        assert (outcome["code"], outcome["error"]) == (0, "")
        assert outcome["took_s"] < 10


@pytest.mark.parametrize("late", [0, 2])
def test_a_late_worker_is_awaited_by_name_and_all_go_on(meeting, late):
    group = meeting(3)
    for index in {0, 1, 2} - {late}:
        group.start(index)
    time.sleep(5)
    group.start(late)
    outcomes = group.outcomes()
    assert [o["code"] for o in outcomes] == [0, 0, 0]
    for outcome in outcomes[:2]:
        named = f"worker {late} at {group.workers[late]} (nobody listens"
        assert named in outcome["said"][0]
        assert 4 < outcome["took_s"] < 12
    assert outcomes[2]["took_s"] < 5


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_worker_is_named_by_all(meeting, missing):
    group = meeting(3, limit_s=3.0)
    for index in {0, 1, 2} - {missing}:
        group.start(index)
    outcomes = group.outcomes()
    address = group.workers[missing]
    agree_to_stop(
        outcomes, f"worker {missing} at {address}", "within 3 s", "missing"
    )
    assert all(o["took_s"] < 3 + 6 for o in outcomes)


def test_two_missing_workers_are_both_named(meeting):
    group = meeting(4, limit_s=2.0)
    group.start(1)
    group.start(3)
    agree_to_stop(group.outcomes(), "worker 0 at", "worker 2 at")


def test_a_name_that_does_not_resolve(meeting):
    group = meeting(2, limit_s=2.0)
    group.workers[1] = "no-such-host.invalid:2222"
    group.start(0)
    (outcome,) = group.outcomes()
    agree_to_stop([outcome], "no-such-host.invalid:2222", "not resolve")


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_another_worker_list(meeting, wrong):
    group = meeting(3, limit_s=10.0)
    others = [*group.workers[:2], "127.0.0.1:9"]
    others[wrong] = group.workers[wrong]
    for index in range(3):
        own = {"workers": others} if index == wrong else {}
        if index == wrong and wrong < 2:
            own = {"workers": [*group.workers[:2], "127.0.0.1:9"]}
        if wrong == 2 and index == wrong:
            own = {"workers": ["127.0.0.1:9", *group.workers[1:]]}
        group.start(index, **own)
    outcomes = group.outcomes()
    assert {o["code"] for o in outcomes} == {errors.NO_RENDEZVOUS}
    for outcome in outcomes:
        assert "another list of workers" in outcome["error"]
        assert "127.0.0.1:9" in outcome["error"]
        assert outcome["took_s"] < 9  # Not the limit: at once.


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_other_versions_and_settings_are_named(meeting, wrong):
    facts = {"keras": "3.15.1", "config epochs": "3", "tensorflow": "2.21"}
    group = meeting(3, facts=facts)
    for index in range(3):
        changed = {"keras": "3.14.0", "config epochs": "4"}
        group.start(index, facts=facts | (changed if index == wrong else {}))
    outcomes = group.outcomes()
    agree_to_stop(
        outcomes,
        "keras is 3.1",
        f"3.14.0 on worker {wrong}",
        f"config epochs is {4 if wrong == 0 else 3} on worker",
    )
    assert "tensorflow" not in outcomes[0]["error"]


def test_two_workers_with_one_index(meeting):
    group = meeting(2, limit_s=8.0)
    group.start(0)
    time.sleep(1)
    group.start(0)
    outcomes = group.outcomes()
    assert {o["code"] for o in outcomes} == {errors.NO_RENDEZVOUS}
    assert "cannot listen" in outcomes[1]["error"]


@pytest.mark.parametrize("who", [0, 1])
def test_a_taken_port_is_told_to_all(meeting, who):
    group = meeting(3, limit_s=4.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        group.workers[who] = f"127.0.0.1:{other.getsockname()[1]}"
        for index in range(3):
            group.start(index)
        outcomes = group.outcomes()
    agree_to_stop(
        outcomes, f"worker {who}", group.workers[who], "taken", "other ports"
    )


def test_a_port_is_awaited_while_an_earlier_run_ends(meeting):
    group = meeting(2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        group.workers[1] = f"127.0.0.1:{other.getsockname()[1]}"
        group.start(0)
        group.start(1)
        time.sleep(2)
    assert [o["code"] for o in group.outcomes()] == [0, 0]


def test_another_token_keeps_out(meeting):
    group = meeting(2, limit_s=3.0, token="one")
    group.start(0)
    group.start(1, token="two")
    first, second = group.outcomes()
    assert {first["code"], second["code"]} == {errors.NO_RENDEZVOUS}
    assert "another job" in first["error"] + second["error"]
    assert "one" not in first["error"].split()


def _reach(address: str) -> socket.socket:
    host, port = address.split(":")
    deadline_s = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=5)
        except OSError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x00\xff\xfe" * 1000,
        b"x" * (3 << 20),
        b"[" * 200_000 + b"\n",
        b'{"nonce": "a"}\n{"body": "{}", "mac": "00"}\n',
        b'{"nonce": "a"}\n{"body": 1, "mac": {"a": []}}\n',
        b'{"nonce": "a"}\n{"refused": "token"}\n',
        b"",
    ],
    ids=["http", "bytes", "oversized", "deep", "mac", "types", "refused",
         "silent"],
)  # fmt: skip
def test_strangers_are_ignored(meeting, garbage):
    group = meeting(2, token="secret")
    group.start(0)
    with _reach(group.workers[0]) as stranger:
        with contextlib.suppress(OSError):
            stranger.sendall(garbage)
        group.start(1)
        outcomes = group.outcomes()
    assert [(o["code"], o["error"]) for o in outcomes] == [(0, "")] * 2


def test_what_was_said_once_does_not_serve_again(meeting):
    """A listener replays a member's lines, and is not let in."""
    group = meeting(2, limit_s=4.0, token="secret")
    with socket.create_server(("127.0.0.1", 0)) as between:
        between.settimeout(20)
        group.start(1, workers=[_name(between), group.workers[1]])
        heard, _ = between.accept()
        with heard:
            heard.sendall(b'{"tfmulti": 1, "nonce": "00"}\n')
            lines = heard.makefile("rb")
            recorded = [lines.readline(), lines.readline()]
            lines.close()
    assert b"secret" not in b"".join(recorded)
    group.start(0)
    with _reach(group.workers[0]) as replayer:
        answers = replayer.makefile("rb")
        answers.readline()
        replayer.sendall(b"".join(recorded))
        assert json.loads(answers.readline()) == {"refused": "token"}
        answers.close()


def _name(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_clocks_are_compared(meeting):
    group = meeting(2)
    group.start(0)
    group.start(1, clock_ahead_s=7200.0)
    first, second = group.outcomes()
    assert (first["code"], second["code"]) == (0, 0)
    assert "worker 1 is 7200" in first["said"][-1]
    assert "ahead" in first["said"][-1]
    assert "behind" in second["said"][-1]


def test_only_the_address_that_is_needed_is_bound(meeting):
    group = meeting(2)
    group.start(0)
    with _reach(group.workers[0]):
        port = int(group.workers[0].split(":")[1])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=5).close()
    group.start(1)
    assert [o["code"] for o in group.outcomes()] == [0, 0]
