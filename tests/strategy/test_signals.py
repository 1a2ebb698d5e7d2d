"""SIGTERM means the same before and after the strategy is built."""

from __future__ import annotations

import pytest

from tests.strategy.worker_processes import run_workers

pytestmark = pytest.mark.workers

OWN_HANDLER = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
seen = []
import tfmulti
tfmulti.init()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(0.1)
report(seen=len(seen))
"""

DEFAULT = """
import signal, time
import tfmulti
tfmulti.init()
child = os.fork()
if not child:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)
    os._exit(0)
_, status = os.waitpid(child, 0)
report(ended_by=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None)
"""


def test_a_handler_of_the_persons_own_is_kept():
    assert [found["seen"] for found in run_workers(OWN_HANDLER, 2)] == [1, 1]


def test_without_one_sigterm_ends_the_process():
    for found in run_workers(DEFAULT, 2):
        assert found["ended_by"] == 15
