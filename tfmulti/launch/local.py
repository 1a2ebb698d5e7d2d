"""Runs a plan on this host and answers for every process that it starts.

    one worker       has our input and output; we wait for it
    several workers  their output comes through pipes: each line is shown with
                     the worker's number before it, and everything is kept in
                     a log file each

A training step needs all workers, so one that fails ends the job: the others
are asked to end (SIGTERM) and, since TensorFlow ignores that once it has
started, killed after a grace. The failure is named with the worker's last
line: the first cause is what a person needs, not the errors of those who
waited. A worker that leaves the others without an error is named as well.
Signals to the launcher go to all workers. Whatever happens, no process stays.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

from tfmulti import console
from tfmulti.errors import SIGNALLED
from tfmulti.launch import child
from tfmulti.launch.plan import LaunchPlan
from tfmulti.launch.worker import RunningWorker

# From SIGTERM to SIGKILL: enough to write a checkpoint of a common model,
# less than the 30 s that Slurm and Kubernetes grant the launcher itself.
GRACE_S = 15.0

# How long a worker is gone before it is worth a line.
LEFT_S = 20.0

_POLL_S = 0.05
_READ_BYTES = 1 << 16
# The signals that end the launcher, and how that is said.
ENDINGS: Mapping[int, str] = {
    **console.ENDINGS,
    signal.SIGHUP: "the terminal has gone",
}


class _Launcher:
    """The workers of one plan, from the first start to the last end."""

    def __init__(
        self,
        show: Callable[[bytes], None],
        say: Callable[[str], None],
        clock: Callable[[], float],
        grace_s: float,
    ):
        self.workers: list[RunningWorker] = []
        self.signals: list[int] = []
        self._show = show
        self._say = say
        self._clock = clock
        self._grace_s = grace_s
        self._selector = selectors.DefaultSelector()
        self._kill_at: float | None = None
        self._obeyed = 0
        self._named: list[RunningWorker] = []
        self._left: dict[RunningWorker, float] = {}
        self.failed: list[RunningWorker] = []
        self.left_before: list[RunningWorker] = []

    def start(
        self, plan: LaunchPlan, env: Mapping[str, str], popen: child.Popen
    ) -> None:
        """Starts all workers of the plan."""
        for worker_plan in plan.workers:
            worker = RunningWorker(worker_plan, env, popen, self._clock())
            self.workers.append(worker)
            if worker.process.stdout is not None:
                self._selector.register(
                    worker.process.stdout, selectors.EVENT_READ, worker
                )

    def wait(self) -> None:
        """Passes output and signals on until every worker has ended."""
        running = list(self.workers)
        while running:
            self._pass_output(_POLL_S)
            ended = [worker for worker in running if worker.has_ended()]
            running = [worker for worker in running if worker not in ended]
            self._note_failures(ended, running)
            self._name_who_left(running)
            self._obey(running)
            if self._kill_at and self._clock() >= self._kill_at:
                _send(running, signal.SIGKILL)
        self._finish_output()

    def close(self) -> None:
        """Leaves no process and no open file behind."""
        for worker in self.workers:
            worker.close()
        self._selector.close()

    def _note_failures(
        self, ended: list[RunningWorker], running: list[RunningWorker]
    ) -> None:
        """Remembers who failed by itself; the first failure ends the rest."""
        failed = [w for w in ended if w.process.returncode != 0]
        self._left.update({w: self._clock() for w in ended if w not in failed})
        # After a signal to us, all that ends has ended for it.
        if not failed or self._kill_at is not None or self.signals:
            return
        self.left_before = list(self._left)
        # Of two at once the one that was killed did not fail for the other.
        failed.sort(key=lambda worker: worker.process.returncode > 0)
        self.failed = failed
        _send(running, signal.SIGTERM)
        self._kill_at = self._clock() + self._grace_s

    def _name_who_left(self, running: list[RunningWorker]) -> None:
        """Says once who has been gone for long while others go on."""
        for worker, since in self._left.items():
            gone_s = self._clock() - since
            if running and gone_s >= LEFT_S and worker not in self._named:
                self._named.append(worker)
                rest = ", ".join(str(w.plan.index) for w in running)
                self._say(
                    f"worker {worker.plan.index} has ended by itself (exit "
                    f"code 0) while worker {rest} goes on; if they still "
                    "train together, they wait for it in vain."
                )

    def _obey(self, running: list[RunningWorker]) -> None:
        """Passes on the signals that have come since the last time."""
        new, self._obeyed = self.signals[self._obeyed :], len(self.signals)
        for signum in new:
            if self._kill_at is not None:
                _send(running, signal.SIGKILL)
            elif not (signum == signal.SIGINT and self._terminal_told_it()):
                _send(running, signum)
            # A program alone may use Ctrl-C as it likes: to stop training
            # and evaluate, say. Workers that wait for one another cannot.
            if signum != signal.SIGINT or len(self.workers) > 1:
                self._kill_at = self._clock() + self._grace_s

    def _terminal_told_it(self) -> bool:
        """Whether Ctrl-C has reached the worker already, without us."""
        if not self.workers[0].alone:
            return False
        with contextlib.suppress(OSError, ValueError):
            return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        return False

    def _pass_output(self, timeout_s: float) -> None:
        for key, _ in self._selector.select(timeout_s):
            data = os.read(key.fd, _READ_BYTES)
            if data:
                self._pass(key.data, data)
            else:
                self._selector.unregister(key.fileobj)
        for worker in self.workers:
            self._show_lines(worker, worker.lines.overdue(self._clock()))

    def _finish_output(self) -> None:
        """Passes on what the pipes still hold after all have ended."""
        for key in list(self._selector.get_map().values()):
            os.set_blocking(key.fd, False)
            with contextlib.suppress(BlockingIOError):
                while data := os.read(key.fd, _READ_BYTES):
                    self._pass(key.data, data)
        for worker in self.workers:
            self._show_lines(worker, worker.lines.finish(self._clock()))

    def _pass(self, worker: RunningWorker, data: bytes) -> None:
        assert worker.log is not None
        worker.log.write(data)
        worker.log.flush()
        self._show_lines(worker, worker.lines.feed(data, self._clock()))

    def _show_lines(self, worker: RunningWorker, lines: list[bytes]) -> None:
        for line in lines:
            self._show(worker.prefix + line + b"\n")


def run(
    plan: LaunchPlan,
    *,
    env: Mapping[str, str],
    show: Callable[[bytes], None] | None = None,
    say: Callable[[str], None] | None = None,
    grace_s: float = GRACE_S,
    clock: Callable[[], float] = time.monotonic,
    popen: child.Popen = subprocess.Popen,
) -> int:
    """Runs the plan's workers to their end.

    Must be called in the main thread, which alone may receive signals.

    Args:
        plan: What to start.
        env: The person's environment, to which each worker's is added.
        show: Takes the lines of several workers.
        say: Takes the launcher's own messages, without a newline at the end.
        grace_s: Time between asking a worker to end and killing it.
        clock: Gives the time in seconds.
        popen: Starts a process.

    Returns:
        0; else the code of the worker that failed first, with 128 + n for
        death by signal n; else, after a signal n to the launcher, 128 + n.
    """
    say = say or _to_stderr
    launcher = _Launcher(show or _to_stdout, say, clock, grace_s)
    with _forwarding(launcher.signals):
        try:
            launcher.start(plan, env, popen)
            launcher.wait()
        finally:
            launcher.close()
    if launcher.failed and len(plan.workers) > 1:
        for line in _explain(launcher):
            say(line)
    code = _code(launcher)
    if launcher.signals and code == SIGNALLED + launcher.signals[0]:
        say(ENDINGS[launcher.signals[0]])
    return code


def _code(launcher: _Launcher) -> int:
    if launcher.failed:
        return child.exit_code(launcher.failed[0].process.returncode)
    codes = [worker.process.returncode for worker in launcher.workers]
    if not any(codes):
        return 0
    told_to_end = launcher.signals and codes[0] == -signal.SIGKILL
    if len(codes) == 1 and not told_to_end:
        return child.exit_code(codes[0])
    return SIGNALLED + launcher.signals[0]


def _explain(launcher: _Launcher) -> Iterator[str]:
    first, *others = launcher.failed
    ended = len(launcher.workers) > len(launcher.failed)
    yield (
        f"worker {first.plan.index} failed first: "
        f"{child.describe(first.process.returncode)}."
        + (" The other workers were ended." if ended else "")
        + f" {_last_line(first)}; all of its output: {first.plan.log_path}."
    )
    for other in others:
        yield (
            f"worker {other.plan.index} failed at the same time: "
            f"{child.describe(other.process.returncode)}; see "
            f"{other.plan.log_path}."
        )
    for gone in launcher.left_before:
        yield (
            f"worker {gone.plan.index} had ended before by itself (exit code "
            "0): if the others still trained with it, that is the cause."
        )


def _last_line(worker: RunningWorker) -> str:
    last = worker.lines.last.decode(errors="replace").strip()
    if not last:
        return "It wrote nothing"
    return f"Its last line is {last!r}"


def _send(workers: list[RunningWorker], signum: int) -> None:
    for worker in workers:
        worker.send(signum)


@contextlib.contextmanager
def _forwarding(received: list[int]) -> Iterator[None]:
    """Collects signals to this process instead of dying of them."""

    def remember(signum: int, frame: FrameType | None) -> None:
        received.append(signum)

    before = {}
    try:
        for signum in ENDINGS:
            # nohup's wish to ignore the hang-up stays.
            if signal.getsignal(signum) is not signal.SIG_IGN:
                before[signum] = signal.signal(signum, remember)
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _to_stdout(line: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
