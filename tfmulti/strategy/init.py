"""`tfmulti.init`: a strategy for code that people have already.

    strategy = tfmulti.init()
    with strategy.scope():
        model = build()
        model.compile(...)
    model.fit(...)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfmulti.cluster import resolve
from tfmulti.communication import Communication
from tfmulti.console import say
from tfmulti.errors import UsageError
from tfmulti.quiet import quiet_import
from tfmulti.strategy.choose import Request, choose
from tfmulti.strategy.devices import physical_gpus
from tfmulti.strategy.joining import meeting, take_own_gpus
from tfmulti.strategy.process import (
    Installed,
    install_request,
    installed,
)


def init(
    strategy: str = "auto",
    replicas: int | None = None,
    communication: Communication | None = None,
    **unknown: Any,
) -> tf.distribute.Strategy:
    """Gives this process's strategy, building it on the first call.

    Call it before anything else uses TensorFlow. Where `python -m tfmulti.run`
    has started the script, its flags decide and the job's strategy is given.

    Args:
        strategy: "one", "mirrored" (all devices of this host), "multiworker"
            (all workers of the cluster that TF_CONFIG names) or "auto":
            multiworker where a cluster of several is named, else mirrored
            where there are several GPUs or `replicas` asks for several, else
            one.
        replicas: Replicas of this process. None: all its GPUs; without a GPU
            two emulated ones for "mirrored" and one for "multiworker".
        communication: How gradients are reduced, NCCL's settings included.
        **unknown: Refused, with what to do instead.

    Returns:
        The strategy; the same object from every call.

    Raises:
        UsageError: What is asked for is not there, contradicts an earlier
            call, or comes after TensorFlow was used.
        RendezvousError: The workers have not found one another in time, or
            do not agree.
    """
    _refuse(unknown)
    request = Request(
        strategy=strategy,
        replicas=replicas,
        communication=communication or Communication(),
    )
    before = installed()
    if before is not None:
        return _again(before, request)
    cluster = resolve(os.environ)
    take_own_gpus(cluster, os.environ)
    with quiet_import(os.environ):
        gpus = physical_gpus()
    choice = choose(request, cluster, gpus)
    with meeting(choice, request.communication, os.environ, say):
        return install_request(choice, request).strategy


def _refuse(unknown: Mapping[str, Any]) -> None:
    for name, value in unknown.items():
        raise UsageError(
            received=f"init({name}={value!r})",
            allowed="strategy, replicas, communication",
            remedy="The workers of a job are those that TF_CONFIG names; "
            "python -m tfmulti.run --workers N starts N on this host."
            if name in ("workers", "num_workers")
            else "Leave it out.",
        )


def _again(before: Installed, request: Request) -> tf.distribute.Strategy:
    if before.request is None:
        if not _agrees(before, request):
            say(
                f"{request} in the script gets the job's strategy "
                f"({before.choice}); the flags it was started with decide."
            )
        return before.strategy
    if request in (before.request, Request()):
        return before.strategy
    raise UsageError(
        received=f"{request} after {before.request}"
        + _difference(before.request, request),
        allowed="one strategy for each process",
        remedy="Call tfmulti.init() once with the arguments that you want; "
        "later calls may leave them out.",
    )


def _agrees(before: Installed, request: Request) -> bool:
    """Whether the job gives what the request asks for."""
    return (
        request.strategy in ("auto", before.choice.kind)
        and request.replicas in (None, before.choice.replicas)
        and request.communication in (Communication(), before.communication)
    )


def _difference(before: Request, request: Request) -> str:
    if before.communication == request.communication:
        return ""
    return " with another communication record"
