"""The meeting of a job's workers, from one worker's side.

    visit    every other worker until it answers: a hello each way, compared
    report   to the chief, on a connection that stays: ready, whom this worker
             does not reach, or a fault
    verdict  the chief's, to all: go once all are ready; stop at a fault or at
             the limit

A fault (a difference, a taken port, the limit) is told to the chief, who
tells all, so that all end with the same words. Who cannot reach the chief
ends with its own, which name the chief.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tfmulti.cluster.record import Cluster
from tfmulti.cluster.rendezvous import port, views
from tfmulti.cluster.rendezvous.facts import (
    Facts,
    check_hello,
    check_report,
    difference,
)
from tfmulti.cluster.rendezvous.wire import (
    MOST_BYTES,
    PATIENCE_S,
    TIMED_OUT,
    Channel,
    OtherJob,
    Stranger,
)
from tfmulti.errors import RendezvousError

_FAILURES = (OSError, Stranger, OtherJob, *TIMED_OUT)
_RETRY_S = 0.5
_MOST_VISITS = 32
# How long a port may still belong to a worker of an earlier run that ends.
_TAKEN_S = 10.0
# For others to hear of a fault: those that are there, and those that come.
_TOLD_S = 5.0
_SKEW_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a meeting is held by.

    Attributes:
        facts: What has to be equal on all workers.
        token: What members of the job know.
        limit_s: How long to wait for all, in seconds.
        first_s: When to say for the first time who is awaited.
        every_s: Between later lines.
    """

    facts: Facts = field(default_factory=dict)
    token: str = ""
    limit_s: float = 300.0
    first_s: float = 5.0
    every_s: float = 30.0


class Meeting:
    """One worker's part in the meeting.

    Args:
        cluster: The workers, seen from this one.
        terms: What the meeting is held by.
        say: Takes each line for the person.
        now: The time of day in seconds, for the comparison of clocks.
    """

    def __init__(
        self,
        cluster: Cluster,
        terms: Terms,
        say: Callable[[str], None],
        now: Callable[[], float] = time.time,
    ):
        self._cluster = cluster
        self._terms = terms
        self._say = say
        self._now = now
        self._others = set(range(cluster.size)) - {cluster.index}
        # Of those not reached yet: why.
        self._reasons = {i: "not asked yet" for i in self._others}
        self._members: dict[int, Channel] = {}
        self._reports: dict[int, Mapping[str, Any]] = {}
        self._fault = ""
        self._verdict: str | None = None  # "" is go, else why to stop.
        self._changed = asyncio.Event()
        self._visits = asyncio.Semaphore(_MOST_VISITS)
        self._serving: set[asyncio.Task[Any]] = set()

    async def hold(self) -> socket.socket:
        """Meets the others.

        Returns:
            A socket that keeps this worker's port.

        Raises:
            RendezvousError: They have not met.
        """
        deadline_s = _clock() + self._terms.limit_s
        held, server = await self._listen()
        jobs = [self._speak_up()]
        if not self._cluster.chief:
            jobs.append(self._report())
        jobs += [self._visit(i) for i in self._others if self._visited(i)]
        tasks = [asyncio.ensure_future(job) for job in jobs]
        try:
            verdict = await self._conclude(deadline_s)
        except BaseException:
            _close(held)
            raise
        finally:
            for channel in list(self._members.values()):
                await channel.finish()
            if server is not None:
                server.close()
            await _end({*tasks, *self._serving})
        if verdict or held is None:
            _close(held)
            raise RendezvousError(verdict)
        return held

    def _visited(self, index: int) -> bool:
        # The chief is reached by the connection for reports.
        return self._cluster.chief or index != 0

    async def _listen(
        self,
    ) -> tuple[socket.socket | None, asyncio.AbstractServer | None]:
        """Takes this worker's own port, or notes that somebody has it."""
        patience_s = min(_TAKEN_S, self._terms.limit_s / 2)
        deadline_s = _clock() + patience_s
        while True:
            held = None
            try:
                held = port.bind(self._cluster.workers, self._cluster.index)
                server = await asyncio.start_server(
                    self._receive, sock=port.beside(held), limit=MOST_BYTES
                )
                return held, server
            except OSError as error:
                _close(held)
                if _clock() < deadline_s and error.errno == errno.EADDRINUSE:
                    await asyncio.sleep(_RETRY_S)
                    continue
                why = "another program has taken it"
                if error.errno != errno.EADDRINUSE:
                    why = (error.strerror or str(error)).lower()
                self._note_fault(
                    f"worker {self._cluster.index} cannot listen on its "
                    f"address {self._cluster.address}: {why}. Free the port, "
                    "or give the workers other ports."
                )
                return None, None

    async def _conclude(self, deadline_s: float) -> str:
        """Waits for the verdict; as the chief, gives it."""
        while True:
            if self._verdict is None and _clock() >= deadline_s:
                self._note_fault(self._gave_up())
            if self._cluster.chief and (self._fault or self._all_ready()):
                await self._tell(self._fault)
                return self._fault
            if self._verdict is None and self._fault:
                await self._wait(lambda: self._verdict is not None, _TOLD_S)
            if self._verdict is not None:
                return self._verdict
            if self._fault:
                return self._fault
            with contextlib.suppress(*TIMED_OUT):
                self._changed.clear()
                left_s = max(0.0, deadline_s - _clock())
                await asyncio.wait_for(self._changed.wait(), left_s)

    def _all_ready(self) -> bool:
        return not self._reasons and all(
            self._reports.get(i, {}).get("ready") and i in self._members
            for i in self._others
        )

    async def _tell(self, verdict: str) -> None:
        """Tells the members; of a fault also those who are still to come."""
        told: set[int] = set()

        async def tell_new() -> None:
            for index in set(self._members) - told:
                with contextlib.suppress(*_FAILURES):
                    await self._members[index].send({"verdict": verdict})
                told.add(index)

        await tell_new()
        deadline_s = _clock() + min(_TOLD_S, self._terms.limit_s)
        while verdict and told != self._others and _clock() < deadline_s:
            await asyncio.sleep(_RETRY_S / 5)
            await tell_new()

    async def _wait(self, done: Callable[[], bool], limit_s: float) -> None:
        deadline_s = _clock() + limit_s
        while not done() and _clock() < deadline_s:
            await asyncio.sleep(_RETRY_S / 5)

    def _note_fault(self, fault: str) -> None:
        self._fault = self._fault or fault
        self._changed.set()

    def _gave_up(self) -> str:
        come = {
            index: {int(i): why for i, why in report["awaits"].items()}
            for index, report in self._reports.items()
            if index in self._members
        }
        return views.gave_up(
            self._terms.limit_s,
            views.awaited(self._missing(), self._cluster.workers),
            views.unreached(come, self._cluster.workers),
        )

    def _missing(self) -> dict[int, str]:
        """Gives those who have not come, with the reason."""
        missing = dict(self._reasons)
        if self._cluster.chief:
            for index in self._others - set(self._members):
                missing.setdefault(index, "it answers, but reports nothing")
        return missing

    async def _speak_up(self) -> None:
        """Says from time to time who is awaited."""
        pause_s = self._terms.first_s
        while True:
            await asyncio.sleep(pause_s)
            missing = self._missing()
            if missing:
                named = views.awaited(missing, self._cluster.workers)
                self._say(f"waiting for {named}.")
            pause_s = self._terms.every_s

    def _hello(self, reports: bool = False) -> dict[str, Any]:
        return {
            "index": self._cluster.index,
            "workers": list(self._cluster.workers),
            "facts": dict(self._terms.facts),
            "time": self._now(),
            "reports": reports,
            "fault": self._fault,
        }

    def _compare(self, hello: Mapping[str, Any]) -> None:
        """Notes what another worker's hello tells of faults."""
        differs = difference(self._hello(), hello)
        if differs or hello["fault"]:
            self._note_fault(differs or hello["fault"])

    async def _connect(self, index: int, reports: bool) -> Channel:
        """Visits a worker: exchanges hellos, and keeps the connection."""
        host, number = port.split(self._cluster.workers[index])
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(host, number, limit=MOST_BYTES),
            PATIENCE_S,
        )
        channel = Channel(reader, writer, self._terms.token, client=True)
        try:
            await channel.greet()
            begun = self._now()
            await channel.send(self._hello(reports))
            hello = check_hello(await channel.receive())
            self._compare_clocks(hello, begun)
            self._compare(hello)
        except BaseException:
            channel.close()
            raise
        self._reasons.pop(index, None)
        self._changed.set()
        return channel

    def _compare_clocks(
        self, hello: Mapping[str, Any], begun: float
    ) -> None:
        ahead_s = hello["time"] - (begun + self._now()) / 2
        if abs(ahead_s) > _SKEW_S:
            self._say(
                f"the clock of worker {hello['index']} is "
                f"{abs(ahead_s):.1f} s {'ahead' if ahead_s > 0 else 'behind'}"
                f" that of worker {self._cluster.index}; times in logs differ."
            )

    async def _visit(self, index: int) -> None:
        while True:
            try:
                async with self._visits:
                    channel = await self._connect(index, reports=False)
                channel.close()
                return
            except _FAILURES as error:
                self._reasons[index] = views.reason(error)
            await asyncio.sleep(_RETRY_S)

    async def _report(self) -> None:
        """Reports to the chief until it gives the verdict."""
        while self._verdict is None:
            channel = None
            try:
                channel = await self._connect(0, reports=True)
                reporting = asyncio.ensure_future(self._send_reports(channel))
                try:
                    answer = await channel.receive(limit_s=None)
                finally:
                    reporting.cancel()
                self._verdict = str(answer.get("verdict"))
                self._changed.set()
            except _FAILURES as error:
                self._reasons[0] = views.reason(error)
                if channel is not None:
                    self._reasons[0] = "it had come, and has left"
                await asyncio.sleep(_RETRY_S)
            finally:
                if channel is not None:
                    channel.close()

    async def _send_reports(self, channel: Channel) -> None:
        with contextlib.suppress(*_FAILURES):
            while True:
                await channel.send(
                    {
                        "ready": not self._reasons and not self._fault,
                        "awaits": self._reasons,
                        "fault": self._fault,
                    }
                )
                await asyncio.sleep(_RETRY_S / 5)

    async def _receive(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serves one visitor."""
        channel = Channel(reader, writer, self._terms.token, client=False)
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            if len(self._serving) <= 4 * self._cluster.size + 64:
                await channel.greet()
                hello = check_hello(await channel.receive())
                await channel.send(self._hello())
                self._compare(hello)
                if hello["reports"] and hello["index"] in self._others:
                    await self._hear(hello["index"], channel)
        except (*_FAILURES, asyncio.CancelledError):
            pass  # Nobody of this job, or gone, or the meeting is over.
        finally:
            self._serving.discard(task)
            channel.close()

    async def _hear(self, index: int, channel: Channel) -> None:
        """Takes a member's reports for as long as it is there."""
        self._members[index] = channel
        try:
            while True:
                report = check_report(
                    await channel.receive(), self._cluster.size
                )
                self._reports[index] = report
                if report["fault"]:
                    self._note_fault(report["fault"])
                self._changed.set()
        finally:
            if self._members.get(index) is channel:
                del self._members[index]


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancels tasks until they have ended."""
    # More than once: before Python 3.12 wait_for can lose a cancellation
    # that comes together with a result (python/cpython#86296).
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=_RETRY_S)


def _clock() -> float:
    return time.monotonic()


def _close(held: socket.socket | None) -> None:
    if held is not None:
        held.close()
