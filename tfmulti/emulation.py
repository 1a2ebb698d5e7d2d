"""Replicas without GPUs: logical devices of one CPU stand in for them.

They show what several replicas do, and take no less time than one.
"""

from __future__ import annotations

# The fewest that show what several replicas do.
EMULATED_REPLICAS = 2


def note(replicas: int, workers: int) -> tuple[str, ...]:
    """Says that replicas are emulated; nothing where there is only one.

    Args:
        replicas: Replicas of each worker.
        workers: Workers of the job.
    """
    if replicas * workers == 1:
        return ()
    each = " a worker" if workers > 1 else ""
    plural = "s" if replicas > 1 else ""
    where = "logical CPU devices" if replicas > 1 else "the CPU"
    return (
        f"No GPU: {replicas} replica{plural}{each} on {where}, an emulation "
        "and not a speed-up.",
    )
