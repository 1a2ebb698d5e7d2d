"""A worker that ends by an exception tells the others why, before it goes.

    worker 1   ValueError: no such file        report ──┐
    worker 0   waits in an all-reduce   ◄── aborted: ───┘
               "worker 1 failed: ValueError: no such file"

Otherwise the others wait until the heartbeats stop (8 s and more), and are
told of an unhealthy task and not of its cause. TensorFlow's coordination
service carries the words; after them no worker can go on, so they are for an
exception that ends the process, not for one that the program handles.
"""

from __future__ import annotations

import contextlib
import re
import sys
from types import TracebackType

import tensorflow as tf
from tensorflow.python.eager import context

from tfmulti.cluster import Cluster
from tfmulti.errors import TfmultiError

LONGEST = 500  # characters of a message
_WORDS = re.compile(
    r"worker (?P<index>\d+) failed: (?P<what>.*?)"
    r" *(?:The error could be from a previous operation|$)",
    re.DOTALL,
)


def tell_the_others(error: BaseException, index: int) -> None:
    """Reports what ends this worker to all workers of the job.

    Args:
        error: The exception. One that another worker has reported, and an
            interruption, which comes to all, are not passed on.
        index: This worker's number.
    """
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return
    if failure_of_another(error) is not None:
        return
    what = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST]
    # The service may be gone, which the others then notice anyway.
    with contextlib.suppress(Exception):
        context.context().report_error_to_cluster(
            tf.errors.ABORTED, f"worker {index} failed: {what}"
        )


def failure_of_another(error: BaseException) -> TfmultiError | None:
    """Gives the other worker's words that an exception carries, if any."""
    if not isinstance(error, tf.errors.OpError):
        return None
    found = _WORDS.search(str(error).partition("is aborted by: ")[2])
    if found is None:
        return None
    return TfmultiError(
        f"worker {found['index']} failed, and so this one ends too. There: "
        f"{found['what'].strip()}"
    )


def tell_at_an_uncaught_exception(cluster: Cluster) -> None:
    """Makes this process tell the others what ends it, if anything does."""
    before = sys.excepthook

    def hook(
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        tell_the_others(error, cluster.index)
        before(kind, error, trace)

    sys.excepthook = hook
