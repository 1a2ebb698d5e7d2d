"""SIGTERM keeps its meaning when the multi-worker strategy is built.

TensorFlow then installs a handler of its own, which notes a pre-emption and
goes on: a worker that is told to end does not. Whatever Python had set before
(usually the default, which ends the process) is set again.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def sigterm_kept() -> Iterator[None]:
    """Sets SIGTERM's handler again to what it was before the code inside."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    # Python allows it in the main thread alone; None is a handler that was
    # not set from Python.
    main = threading.current_thread() is threading.main_thread()
    if main and before is not None:
        signal.signal(signal.SIGTERM, before)
