"""One worker's program: `python -m tfmulti.train.worker`.

The launcher has decided everything and says it in TFMULTI_JOB (what to run)
and TF_CONFIG (where this worker stands). The order below matters: each step
must be done before the next one starts TensorFlow a little further.

    environment   the job is read, the cluster resolved   no TensorFlow yet
    import        its messages on import are kept back
    devices       logical CPUs or GPUs, before any is used
    keras3        what Keras gets wrong under a strategy
    strategy      connects the workers: the first collective
    then          the experiment, or the person's script

Ctrl-C ends it at once and in silence; a script gets it as Python gives it.

Exit codes: 0 done; 2 a mistake that a person can mend, told in one line; 1 an
exception, with its traceback; a script's own.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Mapping

from tfmulti import console
from tfmulti.cluster import Cluster, resolve
from tfmulti.errors import TfmultiError
from tfmulti.launch import child
from tfmulti.launch.job import JOB_VARIABLE, Job
from tfmulti.quiet import quiet_import, quiet_loggers

# What the system says of a run folder that cannot be written (any more).
_REFUSALS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
)


def main(env: Mapping[str, str]) -> int:
    """Runs this worker's job.

    Args:
        env: The process's environment.

    Returns:
        The exit code.
    """
    start_s = time.monotonic()
    # Nothing is worth tidying up yet, and a traceback tells nobody anything.
    child.unblock_interrupts(signal.SIG_DFL)
    console.fill_streams()
    try:
        job = Job.from_environment(env)
        cluster = resolve(env) if job.strategy == "multiworker" else None
        return _run(job, cluster, env, start_s)
    except TfmultiError as error:
        console.say(str(error))
        return error.exit_code
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        place = f": {error.filename}" if error.filename else ""
        console.say(f"the system refused: {error.strerror}{place}.")
        return 2


def _run(
    job: Job, cluster: Cluster | None, env: Mapping[str, str], start_s: float
) -> int:
    quiet_loggers(env)
    with quiet_import(env):
        # Here and not above: only now may TensorFlow write what it likes.
        from tfmulti.train import session
    return session.run(job, cluster, start_s)


if __name__ == "__main__":
    # A script that the job runs may start jobs of its own.
    environment = dict(os.environ)
    os.environ.pop(JOB_VARIABLE, None)
    sys.exit(main(environment))
