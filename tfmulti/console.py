"""How every command meets the terminal: one line a mistake, no traceback.

    stdout or stderr closed    nothing is shown, and nothing breaks
    the reader has left        ends quietly with 141, as of SIGPIPE
    output that is full        one line, 1
    a person's mistake         one line, 2 (the error's own code)
    the system says no         one line, 1: no space, no permission
    Ctrl-C, SIGTERM            one line, 130 or 143, also while Python loads

Nothing heavy is imported here, so that a command can call `take_signals`
before its other imports.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TextIO

from tfmulti.errors import SIGNALLED, TfmultiError

BROKEN_PIPE = SIGNALLED + signal.SIGPIPE
ENDINGS: Mapping[int, str] = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "told to end",
}


def say(line: str) -> None:
    """Prints one line for the person on stderr, where that is open."""
    line = line.replace("\n", "\\n")  # as in a file's name
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"tfmulti: {line}", file=sys.stderr, flush=True)


def take_signals() -> None:
    """Makes Ctrl-C and SIGTERM end this process at once, with one line.

    A command needs it only while nothing is to be tidied up: the launcher has
    handlers of its own for as long as it has workers.
    """
    fill_streams()
    for signum in ENDINGS:
        # A job in the background of a shell script ignores Ctrl-C.
        if signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _end)


def fill_streams() -> None:
    """Opens /dev/null where one of the three standard streams is closed.

    A file or socket would get its number otherwise, and a worker would write
    its output there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Gives the lowest number that is free: this one.
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)


def guarded(work: Callable[[], int]) -> int:
    """Runs a command's work and gives its exit code.

    Args:
        work: Gives an exit code, or raises.
    """
    try:
        code = work()
        if sys.stdout is not None:
            # Here, for at its end Python would show a failure as its own.
            sys.stdout.flush()
        return code
    except TfmultiError as error:
        say(str(error))
        return error.exit_code
    except BrokenPipeError:
        _discard(sys.stdout)
        return BROKEN_PIPE
    except OSError as error:
        _discard(sys.stdout)
        place = f": {error.filename}" if error.filename else ""
        say(f"the system refused: {error.strerror}{place}.")
        return 1


def _end(signum: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"tfmulti: {ENDINGS[signal.Signals(signum)]}\n".encode())
    os._exit(SIGNALLED + signum)


def _discard(stream: TextIO) -> None:
    """Lets what a stream still holds go nowhere when Python flushes it."""
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
