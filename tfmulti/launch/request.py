"""From what a person asked for to what will be done.

A request leaves much open ("auto", "all GPUs"). `decide` closes it with two
facts, the cluster that the environment names and the GPUs that this process
may use, and says in a note whatever it decided by itself:

    strategy   workers given, or a cluster of several  -> multiworker
               several replicas or GPUs                -> mirrored
               otherwise                               -> one
    device     GPUs where there are any, else logical CPU devices
    replicas   all GPUs, shared out among the workers that start here; without
               a GPU two (mirrored) or one a worker (multiworker)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tfmulti import emulation
from tfmulti.cluster import Cluster
from tfmulti.communication import Communication
from tfmulti.config import Experiment
from tfmulti.errors import UsageError
from tfmulti.hardware import VisibleGpus
from tfmulti.launch.job import STRATEGIES, Job, Script
from tfmulti.units import counted

CHOICES = ("auto", *STRATEGIES)

# More of anything than one host holds: a slip of the finger.
LARGEST_COUNT = 1024


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for; None leaves the choice to `decide`.

    Attributes:
        strategy: One of `CHOICES`.
        replicas: Replicas of each worker.
        workers: Workers to start on this host.
        experiment: What to train, or None where `script` is given.
        script: The program to run, or None.
        communication: How gradients are reduced.
        run_dir: Folder for what the run leaves.
        data_dir: Folder to which the data's paths are relative.
    """

    strategy: str = "auto"
    replicas: int | None = None
    workers: int | None = None
    experiment: Experiment | None = None
    script: Script | None = None
    communication: Communication = field(default_factory=Communication)
    run_dir: str
    data_dir: str | None = None

    def __post_init__(self) -> None:
        if self.strategy not in CHOICES:
            raise UsageError(
                received=f"--strategy={self.strategy}",
                allowed=", ".join(CHOICES),
                remedy="Choose one of these for --strategy.",
            )
        _check_count("--replicas", self.replicas)
        _check_count("--workers", self.workers)
        if self.workers and self.strategy in ("one", "mirrored"):
            raise UsageError(
                received=f"--workers={self.workers} with --strategy "
                f"{self.strategy}, which trains in one process",
                allowed="--workers with --strategy multiworker or auto",
                remedy="Use --strategy multiworker, or --replicas for "
                "several replicas in one process.",
            )
        if self.strategy == "one" and (self.replicas or 1) > 1:
            raise UsageError(
                received=f"--replicas={self.replicas} with --strategy one",
                allowed="one replica",
                remedy="Use --strategy mirrored for several replicas.",
            )


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A job, and what should be said about how it came about."""

    job: Job
    notes: tuple[str, ...]


def decide(
    request: Request, *, cluster: Cluster | None, gpus: VisibleGpus
) -> Decision:
    """Closes what a request leaves open.

    Args:
        request: What was asked for.
        cluster: The cluster that the environment names, if any.
        gpus: The GPUs that this process may use.

    Raises:
        UsageError: What was asked for cannot be had here.
    """
    _check_gpus(gpus)
    strategy = _strategy(request, cluster, gpus)
    joins = strategy == "multiworker" and cluster is not None
    workers = _workers(request, strategy, cluster)
    replicas = _replicas(request, strategy, gpus, 1 if joins else workers)
    device = "GPU" if gpus.names else "CPU"
    job = Job(
        strategy=strategy,
        workers=workers,
        replicas_per_worker=replicas,
        device=device,
        communication=request.communication,
        experiment=request.experiment,
        script=request.script,
        run_dir=request.run_dir,
        data_dir=request.data_dir,
    )
    notes = _gpu_notes(gpus)
    if strategy != "multiworker" and cluster is not None and cluster.size > 1:
        notes += (
            f"{cluster.source} names {cluster.size} workers, but --strategy "
            f"{strategy} trains on this host alone.",
        )
    if device == "CPU":
        notes += emulation.note(job.replicas_per_worker, job.workers)
    return Decision(job=job, notes=notes + _batch_notes(job))


def _strategy(
    request: Request, cluster: Cluster | None, gpus: VisibleGpus
) -> str:
    asked = request.strategy
    if asked == "auto":
        if (request.workers or 1) > 1 or (cluster and cluster.size > 1):
            return "multiworker"
        several = (request.replicas or gpus.per_process) > 1
        return "mirrored" if several else "one"
    if asked == "multiworker" and cluster is None and not request.workers:
        raise UsageError(
            received="--strategy multiworker, with no word on the workers",
            allowed="TF_CONFIG in the environment, --workers N, or a "
            "scheduler's job",
            remedy="Add --workers 2 to start two workers on this host.",
        )
    return asked


def _workers(
    request: Request, strategy: str, cluster: Cluster | None
) -> int:
    if strategy != "multiworker":
        return 1
    if cluster is None:
        return request.workers or 1
    if request.workers not in (None, cluster.size):
        raise UsageError(
            received=f"--workers={request.workers} while {cluster.source} "
            f"names {counted(cluster.size, 'worker')}",
            allowed=f"{cluster.size}, or no --workers",
            remedy=f"Leave --workers out to join as worker {cluster.index}, "
            f"or unset {cluster.source}.",
        )
    return cluster.size


def _replicas(
    request: Request, strategy: str, gpus: VisibleGpus, processes: int
) -> int:
    """Replicas for each of the `processes` that start on this host."""
    asked = 1 if strategy == "one" else request.replicas
    if not gpus.names:
        default = emulation.EMULATED_REPLICAS if strategy == "mirrored" else 1
        return asked or default
    share = len(gpus.names) // processes
    if gpus.per_process < len(gpus.names):
        share = min(share, gpus.per_process)
    if share < (asked or 1):
        raise _too_few(asked, gpus, processes)
    return asked or share


def _too_few(
    asked: int | None, gpus: VisibleGpus, processes: int
) -> UsageError:
    wanted = f"--replicas={asked}" if asked else ""
    if processes > 1:
        wanted = f"--workers={processes} {wanted}".strip()
    count = len(gpus.names)
    most = min(count // processes, gpus.per_process)
    kind = "GPU slice" if gpus.per_process < count else "GPU"
    return UsageError(
        received=f"{wanted} where {counted(count, kind)} can be used",
        allowed=f"1 to {counted(most, 'replica')} a worker"
        if most
        else f"1 to {count} workers",
        remedy="Ask for fewer, or set CUDA_VISIBLE_DEVICES=-1 to emulate "
        "replicas on CPUs.",
    )


def _check_gpus(gpus: VisibleGpus) -> None:
    if gpus.asked is not None and gpus.missing and not gpus.names:
        reason = gpus.problem or "this host has no such GPU"
        raise UsageError(
            received=f"CUDA_VISIBLE_DEVICES={gpus.asked} ({reason})",
            allowed="GPUs of this host, or -1 for none",
            remedy="Set CUDA_VISIBLE_DEVICES=-1 to train on CPUs.",
        )


def _gpu_notes(gpus: VisibleGpus) -> tuple[str, ...]:
    if gpus.asked is not None and gpus.missing:
        return (
            f"CUDA_VISIBLE_DEVICES={gpus.asked}: {gpus.missing!r} names no "
            f"further GPU of this host, so {len(gpus.names)} can be used.",
        )
    if gpus.problem:
        return (f"{gpus.problem}; training on CPUs.",)
    return ()


def _batch_notes(job: Job) -> tuple[str, ...]:
    if job.experiment is None:
        return ()
    batch = job.experiment.global_batch_size
    if batch < job.replicas:
        raise UsageError(
            received=f"--global_batch_size={batch} for {job.replicas} "
            "replicas",
            allowed=f"{job.replicas} or more, an example for each replica",
            remedy="Give a larger global batch, or fewer replicas.",
        )
    least, more = divmod(batch, job.replicas)
    if not more:
        return ()
    return (
        f"{job.replicas} replicas do not divide the global batch of {batch}: "
        f"{more} of them get {least + 1} examples a step, the others "
        f"{least}; each example counts the same.",
    )


def _check_count(flag: str, value: int | None) -> None:
    if value is not None and not 1 <= value <= LARGEST_COUNT:
        raise UsageError(
            received=f"{flag}={value}",
            allowed=f"a whole number from 1 to {LARGEST_COUNT}",
            remedy=f"Give such a number for {flag}, or leave it out.",
        )
