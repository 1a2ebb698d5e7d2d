"""The TensorFlow part of a worker: set up, then the experiment or the script.

`install` prepares devices, what Keras needs and the strategy, in this order;
after it nothing about the devices can be changed any more.
"""

from __future__ import annotations

import signal

from tfmulti.cluster import Cluster
from tfmulti.launch import child
from tfmulti.launch.job import Job
from tfmulti.strategy import (
    Installed,
    adopted,
    explain,
    failure_of_another,
    install,
    tell_the_others,
)
from tfmulti.train.experiment import Place, run_experiment
from tfmulti.train.script import run_script


def run(job: Job, cluster: Cluster | None, start_s: float) -> int:
    """Runs a job in this process.

    Args:
        job: What to run.
        cluster: The workers and this one's place among them; None where it
            is alone.
        start_s: When the worker started, by `time.monotonic`.

    Returns:
        The exit code: a script's own, or 0.

    Raises:
        TfmultiError: What was asked for cannot be done, or went wrong in a
            known way.
    """
    installed = install(
        job.strategy,
        job.device,
        job.replicas_per_worker,
        cluster,
        job.communication,
    )
    if job.script is not None:
        return _run_script(job, installed, cluster)
    place = Place(
        job=job,
        strategy=installed.strategy,
        chief=cluster is None or cluster.chief,
        start_s=start_s,
    )
    try:
        run_experiment(place)
    except Exception as error:
        known = explain(_with_cause(error, cluster))
        if known is None:
            raise
        raise known from error
    return 0


def _with_cause(error: Exception, cluster: Cluster | None) -> Exception:
    """Tells other workers of an exception, or finds what they have told."""
    if cluster is None:
        return error
    tell_the_others(error, cluster.index)
    return failure_of_another(error) or error


def _run_script(
    job: Job, installed: Installed, cluster: Cluster | None
) -> int:
    assert job.script is not None
    child.unblock_interrupts(signal.default_int_handler)
    with adopted(installed):
        return run_script(
            path=job.script.path,
            module=job.script.module,
            argv=job.script.argv,
            translate=lambda error: _translate(error, cluster),
        )


def _translate(error: BaseException, cluster: Cluster | None) -> str | None:
    if isinstance(error, Exception):
        error = _with_cause(error, cluster)
    message = explain(error)
    return None if message is None else str(message)
