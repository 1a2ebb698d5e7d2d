"""Workers find one another before TensorFlow starts, or say why they do not.

TensorFlow waits in silence and without end for a worker that does not come,
that has another list of workers, or whose port somebody else has. So the
workers meet first, on the very addresses that TensorFlow will use:

    each   listens on its own address, and visits every other worker, which
           shows that each can reach each; both compare what they have
    chief  hears from all others how far they are, and tells all the same:
           go, or stop and why

    wire.py     messages of members of the job, and of nobody else
    facts.py    what has to be equal on all workers, and what to say if not
    port.py     the worker's own port: found free, and kept for TensorFlow
    views.py    who is awaited, in words
    meeting.py  the meeting itself, from one worker's side
    meet.py     the same, for callers
"""

from __future__ import annotations

from tfmulti.cluster.rendezvous.facts import flat, versions
from tfmulti.cluster.rendezvous.meet import (
    TIMEOUT_VARIABLE,
    TOKEN_VARIABLE,
    check_timeout,
    met,
    settings,
)

__all__ = [
    "TIMEOUT_VARIABLE",
    "TOKEN_VARIABLE",
    "check_timeout",
    "flat",
    "met",
    "settings",
    "versions",
]
