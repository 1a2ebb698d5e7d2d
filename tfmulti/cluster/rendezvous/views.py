"""Who is awaited and why, in words."""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Mapping, Sequence

from tfmulti.cluster.rendezvous.wire import TIMED_OUT, OtherJob, Stranger

NAMED = 10


def reason(error: BaseException) -> str:
    """Says why a visit to another worker has failed."""
    if isinstance(error, socket.gaierror):
        return "the name does not resolve"
    if isinstance(error, OtherJob):
        return "a worker of another job answers; its token differs"
    if isinstance(error, Stranger):
        return f"another program answers ({error})"
    if isinstance(error, TIMED_OUT):
        return "no answer: the host is down or the port blocked"
    number = _errno(error)
    if number == errno.ECONNREFUSED:
        return "nobody listens there yet"
    if number == errno.ETIMEDOUT:
        return "no answer: the host is down or the port blocked"
    if number is not None:
        return os.strerror(number).lower()
    return str(error) or repr(error)


def _errno(error: BaseException) -> int | None:
    """Gives an error's number; of several addresses tried, the last one's."""
    # asyncio puts words of its own in place of the system's, and joins the
    # errors of several addresses into one without a number.
    numbers = re.findall(r"\[Errno (\d+)\]", str(error))
    number = getattr(error, "errno", None)
    return number or (int(numbers[-1]) if numbers else None)


def awaited(reasons: Mapping[int, str], workers: Sequence[str]) -> str:
    """Names workers with address and reason."""
    named = [
        f"worker {index} at {workers[index]} ({reasons[index]})"
        for index in sorted(reasons)[:NAMED]
    ]
    more = len(reasons) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


def unreached(
    others: Mapping[int, Mapping[int, str]], workers: Sequence[str]
) -> str:
    """Names what workers that did come say of those they do not reach."""
    told = [
        f"worker {who} does not reach {awaited(reasons, workers)}"
        for who, reasons in sorted(others.items())
        if reasons
    ]
    return "; ".join(told[:NAMED])


def gave_up(limit_s: float, missing: str, blocked: str) -> str:
    """Says after the limit what the job still lacks."""
    parts = [f"still missing: {missing}"] if missing else []
    if blocked:
        parts.append(blocked)
    return (
        f"the workers have not met within {limit_s:g} s; "
        + "; ".join(parts or ["they did not agree to start"])
        + ". Start every worker of the list, and let each reach all others "
        "at these addresses."
    )
