"""A running worker: its process, its log, and the lines that it has written."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from tfmulti.launch import child
from tfmulti.launch.output import Lines
from tfmulti.launch.plan import WorkerPlan


class RunningWorker:
    """One worker from its start until nothing of it is left.

    Args:
        plan: What to start.
        env: The person's environment, to which the plan's is added.
        popen: Starts a process.
        now: The time in seconds.
    """

    def __init__(
        self,
        plan: WorkerPlan,
        env: Mapping[str, str],
        popen: child.Popen,
        now: float,
    ):
        self.plan = plan
        self.alone = plan.log_path is None
        self.lines = Lines(now)
        self.prefix = b"[worker %d] " % plan.index
        self.log = _open_log(plan.log_path)
        self._gone = False
        try:
            self.process = child.start(
                plan.argv, {**env, **plan.env}, alone=self.alone, popen=popen
            )
        except BaseException:
            if self.log is not None:
                self.log.close()
            raise

    def has_ended(self) -> bool:
        """Whether the worker has ended; ends what it has left behind."""
        if not self._gone and self.process.poll() is not None:
            # At once and never later: as soon as the group is empty, its
            # number may become that of somebody else's.
            if not self.alone:
                self.send(signal.SIGKILL)
            self._gone = True
        return self._gone

    def send(self, signum: int) -> None:
        """Sends a signal to the worker and to what it has started."""
        if not self._gone:
            child.send(self.process, signum, self.alone)

    def close(self) -> None:
        """Ends the worker if it still runs, and closes its files."""
        if not self.has_ended():
            self.send(signal.SIGKILL)
            self.process.wait()
            self.has_ended()
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self.log is not None:
            self.log.close()


def _open_log(path: str | None) -> BinaryIO | None:
    if path is None:
        return None
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return open(path, "wb")
