"""The launch as a value: every command and variable, before any is used.

A plan can be printed (`--dry_run`), compared with a golden file, and run
(`local.py`). Making one starts nothing and touches no device.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfmulti.cluster import Cluster
from tfmulti.communication import environment as nccl_environment
from tfmulti.launch import environment as variables
from tfmulti.launch.job import Job

WORKER_MODULE = "tfmulti.train.worker"


@dataclass(frozen=True, kw_only=True)
class WorkerPlan:
    """One process to start on this host.

    Attributes:
        index: Its place among the job's workers; 0 is the chief.
        argv: The command.
        env: The variables to add to the person's environment.
        log_path: The file that keeps its output; None: it writes to our own
            standard output and error.
    """

    index: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    log_path: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Gives the record as plain JSON values."""
        return {
            "index": self.index,
            "argv": list(self.argv),
            "env": dict(self.env),
            "log_path": self.log_path,
        }


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """A job, the processes that run it on this host, and what to say first.

    Attributes:
        job: What to run.
        workers: The processes of this host.
        cluster: All workers of the job, and where that was learnt.
        notes: What to say before the start.
    """

    job: Job
    workers: tuple[WorkerPlan, ...]
    cluster: Cluster | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Gives the record as plain JSON values."""
        return {
            "job": self.job.to_json(),
            "cluster": self.cluster.to_json() if self.cluster else None,
            "workers": [worker.to_json() for worker in self.workers],
            "notes": list(self.notes),
        }


def make_plan(
    job: Job,
    *,
    cluster: Cluster | None,
    joins: bool,
    env: Mapping[str, str],
    gpu_names: tuple[str, ...],
    cores: int,
    notes: tuple[str, ...] = (),
    python: str = sys.executable,
) -> LaunchPlan:
    """Plans the processes that run `job` on this host.

    Args:
        job: What to run.
        cluster: The workers' addresses; None without "multiworker".
        joins: Whether to start the cluster's one worker at `cluster.index`,
            not all of them.
        env: The person's environment.
        gpu_names: This host's GPUs as CUDA_VISIBLE_DEVICES names them.
        cores: CPU cores to share out.
        notes: What to say before the start.
        python: The interpreter of the workers.
    """
    places = _places(cluster, joins)
    nccl = nccl_environment(job.communication, env)
    workers = []
    for place, seen in enumerate(places):
        index = seen.index if seen else 0
        added = (
            variables.job_variables(job, seen)
            | variables.gpu_variables(
                gpu_names, place, job.replicas_per_worker, env
            )
            | variables.common_variables(job, seen, len(places), cores, env)
            | dict(nccl.variables)
        )
        workers.append(
            WorkerPlan(
                index=index,
                argv=(python, "-m", WORKER_MODULE),
                env=added,
                log_path=_log_path(job, index) if len(places) > 1 else None,
            )
        )
    unused = _unused_note(job, len(gpu_names), len(places))
    return LaunchPlan(
        job=job,
        workers=tuple(workers),
        cluster=cluster,
        notes=(*notes, *unused, *nccl.notes),
    )


def _places(cluster: Cluster | None, joins: bool) -> list[Cluster | None]:
    """Gives the cluster as seen from each worker that starts here."""
    if cluster is None or joins:
        return [cluster]
    return [cluster.at(index) for index in range(cluster.size)]


def _log_path(job: Job, index: int) -> str:
    return f"{job.run_dir}/logs/worker-{index}.log"


def _unused_note(job: Job, gpus: int, processes: int) -> tuple[str, ...]:
    used = job.replicas_per_worker * processes
    if gpus <= used:
        return ()
    return (f"{used} of {gpus} GPUs are used.",)
