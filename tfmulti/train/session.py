"""The TensorFlow part of a worker: set up, then the experiment or the script.

`install` prepares devices, what Keras needs and the strategy, in this order;
after it nothing about the devices can be changed any more.
"""

from __future__ import annotations

import signal

from tfmulti.cluster import Cluster
from tfmulti.launch import child
from tfmulti.launch.job import Job
from tfmulti.strategy import Installed, adopted, explain, install
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
        return _run_script(job, installed)
    place = Place(
        job=job,
        strategy=installed.strategy,
        chief=cluster is None or cluster.chief,
        start_s=start_s,
    )
    try:
        run_experiment(place)
    except Exception as error:
        known = explain(error)
        if known is None:
            raise
        raise known from error
    return 0


def _run_script(job: Job, installed: Installed) -> int:
    assert job.script is not None
    child.unblock_interrupts(signal.default_int_handler)
    with adopted(installed):
        return run_script(
            path=job.script.path,
            module=job.script.module,
            argv=job.script.argv,
            translate=_translate,
        )


def _translate(error: BaseException) -> str | None:
    message = explain(error)
    return None if message is None else str(message)
