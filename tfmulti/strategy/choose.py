"""What `tfmulti.init` was asked for + what is there -> what to build.

Pure: the cluster and the number of GPUs are arguments, the answer is a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tfmulti import emulation
from tfmulti.cluster import Cluster
from tfmulti.communication import Communication
from tfmulti.errors import UsageError
from tfmulti.units import counted

STRATEGIES = ("auto", "one", "mirrored", "multiworker")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call of `tfmulti.init` asked for.

    Attributes:
        strategy: One of `STRATEGIES`.
        replicas: Replicas of this worker; None: as many as there are GPUs.
        communication: How to reduce gradients.
    """

    strategy: str = "auto"
    replicas: int | None = None
    communication: Communication = field(default_factory=Communication)

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise UsageError(
                received=f"strategy={self.strategy!r}",
                allowed=", ".join(STRATEGIES),
                remedy="Choose one of these.",
            )
        if self.replicas is None:
            return
        whole = isinstance(self.replicas, int) and self.replicas >= 1
        if not whole or (self.strategy == "one" and self.replicas > 1):
            raise UsageError(
                received=f"replicas={self.replicas} with "
                f"strategy={self.strategy!r}",
                allowed="1" if self.strategy == "one" else "a number from 1",
                remedy="Leave replicas out, or give such a number.",
            )

    def __str__(self) -> str:
        return f"init(strategy={self.strategy!r}, replicas={self.replicas})"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What to build.

    Attributes:
        kind: "one", "mirrored" or "multiworker".
        device: "GPU" or "CPU".
        replicas: Replicas of this worker.
        cluster: The workers, for "multiworker".
        notes: What the person should know, one sentence each.
    """

    kind: str
    device: str
    replicas: int
    cluster: Cluster | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        workers = self.cluster.size if self.cluster else 1
        if self.kind == "one":
            return f"one replica on one {self.device}"
        text = f"{self.kind}: {counted(self.replicas, 'replica')} on "
        text += f"{self.device}s"
        if workers > 1:
            return f"{text} in each of {workers} workers"
        return text


def choose(request: Request, cluster: Cluster | None, gpus: int) -> Choice:
    """Decides what to build.

    Args:
        request: What was asked for.
        cluster: The cluster that the environment names, if any.
        gpus: GPUs that this process sees.

    Raises:
        UsageError: "multiworker" without a cluster, or more replicas than
            GPUs on a host that has GPUs.
    """
    kind = _kind(request, cluster, gpus)
    if kind == "multiworker" and cluster is None:
        raise UsageError(
            received="strategy='multiworker' without a cluster",
            allowed="TF_CONFIG or a scheduler that names the workers",
            remedy="Set TF_CONFIG on each worker, or start the script with "
            "python -m tfmulti.run --strategy multiworker --workers N.",
        )
    device = "GPU" if gpus else "CPU"
    replicas = _replicas(request, kind, gpus)
    if gpus and replicas > gpus:
        raise UsageError(
            received=f"replicas={replicas}",
            allowed=f"up to {gpus}, the GPUs that this process sees",
            remedy="Ask for fewer, or look at CUDA_VISIBLE_DEVICES.",
        )
    return Choice(
        kind=kind,
        device=device,
        replicas=replicas,
        cluster=cluster if kind == "multiworker" else None,
        notes=_notes(kind, device, replicas, cluster),
    )


def _kind(request: Request, cluster: Cluster | None, gpus: int) -> str:
    if request.strategy != "auto":
        return request.strategy
    if cluster is not None and cluster.size > 1:
        return "multiworker"
    replicas = gpus if request.replicas is None else request.replicas
    return "mirrored" if replicas > 1 else "one"


def _replicas(request: Request, kind: str, gpus: int) -> int:
    if kind == "one":
        return 1
    if request.replicas is not None:
        return request.replicas
    if gpus:
        return gpus
    return emulation.EMULATED_REPLICAS if kind == "mirrored" else 1


def _notes(
    kind: str, device: str, replicas: int, cluster: Cluster | None
) -> tuple[str, ...]:
    notes: list[str] = []
    if device == "CPU":
        workers = cluster.size if cluster and kind == "multiworker" else 1
        notes.extend(emulation.note(replicas, workers))
    if cluster is not None and cluster.size > 1 and kind != "multiworker":
        notes.append(
            f"{cluster.source} names {cluster.size} workers, but strategy "
            f"{kind!r} trains this one by itself."
        )
    return tuple(notes)
