"""One worker's program: `python -m tfmulti.train.worker`.

The launcher has decided everything and says it in TFMULTI_JOB (what to run)
and TF_CONFIG (where this worker stands). The order below matters: each step
must be done before the next one starts TensorFlow a little further.

    environment   the job is read, the cluster resolved   no TensorFlow yet
    rendezvous    the workers of the job find one another
    import        its messages on import are kept back
    devices       logical CPUs or GPUs, before any is used
    keras3        what Keras gets wrong under a strategy
    strategy      connects the workers: the first collective
    then          the experiment, or the person's script

Ctrl-C ends it at once and in silence; a script gets it as Python gives it.

Exit codes: those of `errors.py`; a script's own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import time
from collections.abc import Mapping

from tfmulti import console
from tfmulti.cluster import Cluster, rendezvous, resolve
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
        with contextlib.ExitStack() as stack:
            if cluster is not None:
                terms = rendezvous.settings(env, cluster, _facts(job))
                meeting = rendezvous.met(cluster, terms, console.say)
                stack.enter_context(meeting)
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


def _facts(job: Job) -> dict[str, str]:
    """Gives what has to be equal on all workers of a job."""
    # Paths, and a script's own arguments, may differ between hosts.
    record = job.to_json()
    shared = (
        "workers",
        "replicas_per_worker",
        "device",
        "communication",
        "experiment",
    )
    return rendezvous.versions() | rendezvous.flat(
        {name: record[name] for name in shared}, "job"
    )


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
