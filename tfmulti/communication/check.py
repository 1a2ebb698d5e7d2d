"""Can this job honour its communication settings?

Asked before anything starts. A choice that cannot be met is an error; a
setting that has no effect here is one note. Nothing is dropped in silence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import metadata

from tfmulti.communication.record import Communication
from tfmulti.errors import UsageError

_ALLOWED = {
    "one": ("auto", "nccl", "hierarchical_copy", "one_device", "ring"),
    "mirrored": ("auto", "nccl", "hierarchical_copy", "one_device"),
    "multiworker": ("auto", "nccl", "ring"),
}
_PACKED = ("nccl", "hierarchical_copy")
_USES_NCCL = ("auto", "nccl")


def check(
    communication: Communication,
    *,
    strategy: str,
    device: str,
    replicas: int,
    workers: int,
    nccl_version: tuple[int, ...] | None = None,
    is_file: Callable[[str], bool] = os.path.isfile,
) -> tuple[str, ...]:
    """Checks settings against the job that will use them.

    Args:
        communication: The settings.
        strategy: "one", "mirrored" or "multiworker".
        device: "GPU" or "CPU".
        replicas: Replicas of one worker.
        workers: Workers of the job.
        nccl_version: The NCCL that is installed, where that is known; see
            `installed_nccl`.
        is_file: Says whether a path is a file; for the topology file.

    Returns:
        One sentence for each setting that has no effect in this job.

    Raises:
        UsageError: A setting that this job cannot honour.
    """
    _check_all_reduce(communication, strategy, device)
    if strategy != "one":
        _check_packs(communication, strategy)
    if strategy == "one" or replicas * workers == 1:
        return _idle_notes(communication)
    notes = _timeout_notes(communication, strategy)
    return notes + _nccl_notes(communication, device, nccl_version, is_file)


def installed_nccl(
    installed: Callable[[str], str] = metadata.version,
) -> tuple[int, ...] | None:
    """Gives the version of the pip package of NCCL; None: not from pip."""
    try:
        text = installed("nvidia-nccl-cu12")
    except metadata.PackageNotFoundError:
        return None
    return tuple(int(part) for part in text.split(".")[:3])


def _check_all_reduce(
    communication: Communication, strategy: str, device: str
) -> None:
    chosen = communication.all_reduce
    allowed = [
        choice
        for choice in _ALLOWED[strategy]
        if device == "GPU" or choice != "nccl"
    ]
    if chosen in allowed:
        return
    if chosen == "nccl":
        reason = "without a GPU (NCCL moves data between GPUs only)"
    else:
        reason = f"with --strategy {strategy}"
    raise UsageError(
        received=f"--all_reduce={chosen} {reason}",
        allowed=", ".join(allowed),
        remedy="Choose one of these, or leave --all_reduce out.",
    )


def _check_packs(communication: Communication, strategy: str) -> None:
    chosen = communication.all_reduce
    if communication.packs is not None and (
        strategy == "multiworker" or chosen not in _PACKED
    ):
        raise UsageError(
            received=f"--packs={communication.packs} with --strategy "
            f"{strategy} and --all_reduce={chosen}",
            allowed="--packs with --strategy mirrored and --all_reduce "
            + " or ".join(_PACKED),
            remedy="Use --pack_mb to size the packs of several workers."
            if strategy == "multiworker"
            else "Leave --packs out, or choose one of these.",
        )
    if communication.pack_mb is not None and strategy == "mirrored":
        raise UsageError(
            received=f"--pack_mb={communication.pack_mb} with --strategy "
            "mirrored",
            allowed="--pack_mb with --strategy multiworker",
            remedy="Use --packs with --all_reduce nccl to part the gradients "
            "of one host.",
        )


def _idle_notes(communication: Communication) -> tuple[str, ...]:
    if communication == Communication():
        return ()
    return (
        "One replica has nothing to reduce: the communication settings have "
        "no effect.",
    )


def _timeout_notes(
    communication: Communication, strategy: str
) -> tuple[str, ...]:
    if communication.timeout_s is None or strategy == "multiworker":
        return ()
    return (
        "--collective_timeout_s has no effect with --strategy mirrored: "
        "TensorFlow times out collectives between workers only.",
    )


def _nccl_notes(
    communication: Communication,
    device: str,
    nccl_version: tuple[int, ...] | None,
    is_file: Callable[[str], bool],
) -> tuple[str, ...]:
    nccl = communication.effective_nccl()
    if not nccl.given():
        return ()
    names = ", ".join(nccl.variables())
    if device != "GPU":
        return (f"Without a GPU the NCCL settings have no effect: {names}.",)
    if communication.all_reduce not in _USES_NCCL:
        return (
            f"--all_reduce={communication.all_reduce} does not use NCCL; its "
            f"settings have no effect: {names}.",
        )
    _check_topology(nccl.topology_file, is_file)
    newer = nccl.newer_than(nccl_version) if nccl_version else ()
    if newer:
        raise UsageError(
            received=", ".join(newer),
            allowed="what the installed NCCL "
            f"{'.'.join(map(str, nccl_version or ()))} reads",
            remedy="Leave it out, or install a newer nvidia-nccl-cu12.",
        )
    return ()


def _check_topology(
    path: str | None, is_file: Callable[[str], bool]
) -> None:
    if path is not None and not is_file(path):
        raise UsageError(
            received=f"NCCL topology_file={path}, which is not there",
            allowed="the path of a topology XML file on this host",
            remedy="Correct the path, or leave NCCL to find the topology.",
        )
