"""Why a visit has failed, in words that tell the cases apart."""

from __future__ import annotations

import errno
import socket

import pytest

from tfmulti.cluster.rendezvous import views
from tfmulti.cluster.rendezvous.wire import OtherJob, Stranger


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "not resolve"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed"),
         "nobody listens"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed "
                 "('::1', 5, 0, 0), [Errno 111] Connect call failed "
                 "('127.0.0.1', 5)"), "nobody listens"),
        (OSError(errno.EHOSTUNREACH, "Connect call failed ('a', 5)"),
         "no route to host"),
        (TimeoutError(), "blocked"),
        (OSError(errno.ETIMEDOUT, "Connect call failed"), "blocked"),
        (OtherJob(), "another job"),
        (Stranger("not a message"), "another program"),
        (OSError("strange"), "strange"),
    ],
)  # fmt: skip
def test_reasons(error, words):
    assert words in views.reason(error)


def test_many_are_counted_after_the_first():
    reasons = dict.fromkeys(range(30), "why")
    text = views.awaited(reasons, [f"h{i}:1" for i in range(30)])
    assert "worker 9 at h9:1 (why)" in text
    assert text.endswith("and 20 more")


def test_who_does_not_reach_whom():
    text = views.unreached({2: {1: "why"}, 3: {}}, ["a:1", "b:1", "c:1"])
    assert text == "worker 2 does not reach worker 1 at b:1 (why)"
    assert "worker 2 does not" in views.gave_up(5, "", text)
