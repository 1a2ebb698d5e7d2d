"""The meeting for callers: a context, within which TensorFlow starts."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future

from tfmulti.cluster.record import Cluster
from tfmulti.cluster.rendezvous.facts import Facts
from tfmulti.cluster.rendezvous.meeting import Meeting, Terms
from tfmulti.errors import UsageError

TOKEN_VARIABLE = "TFMULTI_TOKEN"
TIMEOUT_VARIABLE = "TFMULTI_RENDEZVOUS_TIMEOUT_S"


def settings(
    env: Mapping[str, str], cluster: Cluster, facts: Facts
) -> Terms:
    """Gives what a meeting is held by, from the environment.

    TFMULTI_TOKEN is a secret of the job's workers; without it they know one
    another by what the scheduler calls this run of the job.

    Raises:
        UsageError: TFMULTI_RENDEZVOUS_TIMEOUT_S is no time.
    """
    terms = Terms(
        facts=facts, token=env.get(TOKEN_VARIABLE) or cluster.identity
    )
    text = env.get(TIMEOUT_VARIABLE, "").strip()
    if not text:
        return terms
    return dataclasses.replace(terms, limit_s=check_timeout(text))


def check_timeout(text: str) -> float:
    """Reads a time limit in seconds.

    Raises:
        UsageError: It is none.
    """
    try:
        limit_s = float(text)
    except ValueError:
        limit_s = math.nan
    if not 0 < limit_s < math.inf:
        raise UsageError(
            received=f"a rendezvous time-out of {text} s",
            allowed="a number of seconds above 0",
            remedy=f"Correct --rendezvous_timeout_s or {TIMEOUT_VARIABLE}.",
        )
    return limit_s


@contextlib.contextmanager
def met(
    cluster: Cluster,
    terms: Terms,
    say: Callable[[str], None],
    now: Callable[[], float] = time.time,
) -> Iterator[None]:
    """Meets the other workers, and keeps this worker's port for TensorFlow.

    Args:
        cluster: The workers, seen from this one.
        terms: What the meeting is held by.
        say: Takes each line for the person.
        now: The time of day in seconds, to compare clocks.

    Raises:
        RendezvousError: The workers have not met, and why.
    """
    if cluster.size == 1:
        yield
        return
    meeting = Meeting(cluster, terms, say, now)
    with _in_a_thread(lambda: asyncio.run(meeting.hold())).result():
        yield


def _in_a_thread(
    work: Callable[[], socket.socket],
) -> Future[socket.socket]:
    """Runs the meeting beside this thread, in which a notebook has a loop.

    Ctrl-C leaves at once: the thread does not keep the process.
    """
    future: Future[socket.socket] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="rendezvous", daemon=True).start()
    return future
