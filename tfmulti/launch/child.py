"""One worker process: how it starts, ends, and never outlives the launcher.

A worker among several leads a process group of its own (a session, so that
the terminal's Ctrl-C reaches the launcher alone, which then tells all), and
signals go to the whole group: helpers that a worker started end with it. A
worker that is alone stays in the launcher's group, since only the terminal's
foreground group may read from it.

A worker starts with SIGINT blocked, and unblocks it when it knows what to do
then (`unblock_interrupts`): a Ctrl-C while Python loads would end in a
traceback of Python's own start. One that came before is not lost: it waits.

Linux kills a worker when the launcher dies, however that happens
(PR_SET_PDEATHSIG, prctl(2)).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfmulti.errors import SIGNALLED

_PR_SET_PDEATHSIG = 1

Popen = Callable[..., "subprocess.Popen[bytes]"]


def start(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    alone: bool,
    popen: Popen = subprocess.Popen,
) -> subprocess.Popen[bytes]:
    """Starts a worker.

    Args:
        argv: The command.
        env: Its whole environment.
        alone: Whether it has our input and output for itself. Otherwise it
            reads nothing, and its output and errors come through one pipe.
        popen: Starts a process.
    """
    streams: dict[str, int] = {}
    if not alone:
        streams = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }
    return popen(
        list(argv),
        env=dict(env),
        bufsize=0,
        start_new_session=not alone,
        preexec_fn=_prepare(os.getpid()),
        **streams,
    )


def unblock_interrupts(handler: Any) -> None:
    """Lets SIGINT come through, in the worker; a waiting one comes now.

    Args:
        handler: What it shall do, as `signal.signal` takes it: SIG_DFL ends
            the process at once.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def send(process: subprocess.Popen[bytes], signum: int, alone: bool) -> None:
    """Sends a signal to a worker, and to its group if it leads one.

    The group is signalled even after the worker has ended: what it left
    behind still belongs to it.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if alone:
            process.send_signal(signum)
        else:
            os.killpg(process.pid, signum)


def exit_code(returncode: int) -> int:
    """Gives the shell's exit code: 128 + n for death by signal n."""
    return SIGNALLED - returncode if returncode < 0 else returncode


def describe(returncode: int) -> str:
    """Says how a process ended: "exit code 3", "killed by SIGKILL"."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"killed by {name}"


def _prepare(launcher: int) -> Callable[[], None]:
    """Makes what runs in the child just before it becomes the worker."""
    # Loaded here, not in the child: between fork and exec as little as
    # possible may happen.
    linux = sys.platform == "linux"
    prctl = ctypes.CDLL(None).prctl if linux else None

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        if prctl is None:
            return
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The launcher may have died before the child could ask.
        if os.getppid() != launcher:
            os.kill(os.getpid(), signal.SIGKILL)

    return prepare
