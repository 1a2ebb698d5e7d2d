"""What can go wrong, as the person who started the run sees it.

Every error that a person can cause or mend is a `TfmultiError`: the commands
print its text alone, without a traceback, and exit with its `exit_code`.

    0   done
    1   the run failed (an exception in the training program)
    2   bad usage: a flag, a setting, an environment or a file
    3   the workers of a job have not found one another, or do not agree
    75  pre-empted, its state saved: start it again (EX_TEMPFAIL of sysexits.h)
    128 + n   ended by signal n

A script that the command runs may end with any other code of its own.
"""

from __future__ import annotations

DONE = 0
FAILED = 1
BAD_USAGE = 2
NO_RENDEZVOUS = 3
REQUEUE = 75
SIGNALLED = 128


class TfmultiError(Exception):
    """An error with a message for people and an exit code for programs."""

    exit_code = FAILED


class UsageError(TfmultiError):
    """Something that was asked for cannot be done as asked.

    Args:
        received: What was given, with its value: "--strategy 'mirored'".
        allowed: What would have been accepted.
        remedy: What to do next, as one imperative sentence.
    """

    exit_code = BAD_USAGE

    def __init__(self, *, received: str, allowed: str, remedy: str):
        self.received = received
        self.allowed = allowed
        self.remedy = remedy
        super().__init__(
            f"received {received}; allowed: {allowed}. {remedy}"
        )


class RendezvousError(TfmultiError):
    """The workers of a job have not found one another, or do not agree."""

    exit_code = NO_RENDEZVOUS
