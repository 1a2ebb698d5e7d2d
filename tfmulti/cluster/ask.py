"""Commands that a resolver may ask, as a function that tests replace.

A resolver is a function of the environment and of what such commands print,
so that a recorded pair of the two is a test.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

# A command -> what it printed; None: it is not there, or has failed.
Ask = Callable[[Sequence[str]], str | None]

LIMIT_S = 30.0


def ask(command: Sequence[str]) -> str | None:
    """Runs a command and gives what it printed, or None."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
