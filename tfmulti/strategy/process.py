"""The one strategy of this process: installed once, found again later.

A process has one set of devices and so one strategy. It is kept on
TensorFlow's own context, the object that holds the devices: it lives exactly
as long as they do, and this package keeps no state of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

import tensorflow as tf
from tensorflow.python.eager import context as tf_context

from tfmulti import communication as communication_lib
from tfmulti import keras3
from tfmulti.cluster import Cluster
from tfmulti.communication import Communication
from tfmulti.console import say
from tfmulti.strategy.build import build_strategy
from tfmulti.strategy.choose import Choice, Request
from tfmulti.strategy.devices import configure_devices
from tfmulti.strategy.last_words import tell_at_an_uncaught_exception

_ATTRIBUTE = "_tfmulti_installed"

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Installed:
    """What this process trains with.

    Attributes:
        strategy: The strategy.
        choice: What it was built from.
        communication: How gradients are reduced.
        request: The call of `tfmulti.init` behind it; None: the launcher.
    """

    strategy: tf.distribute.Strategy
    choice: Choice
    communication: Communication
    request: Request | None = None


def installed() -> Installed | None:
    """Gives what was installed in this process, or None."""
    return getattr(tf_context.context(), _ATTRIBUTE, None)


def install(
    kind: str,
    device: str,
    replicas: int,
    cluster: Cluster | None = None,
    communication: Communication | None = None,
) -> Installed:
    """Sets this process up as a worker of a job, for the launcher.

    Devices, strategy and what Keras needs, in this order; nothing may have
    used TensorFlow before. The NCCL variables are the launcher's to set.

    Args:
        kind: "one", "mirrored" or "multiworker".
        device: "GPU" or "CPU".
        replicas: Replicas of this worker.
        cluster: The workers, for "multiworker".
        communication: How to reduce gradients.

    Raises:
        UsageError: The devices are not there, or TensorFlow was used before.
    """
    choice = Choice(
        kind=kind, device=device, replicas=replicas, cluster=cluster
    )
    return _install(choice, communication or Communication(), None)


def install_request(
    choice: Choice,
    request: Request,
    env: MutableMapping[str, str] = os.environ,
    say: Say = say,
) -> Installed:
    """Sets this process up for a call of `tfmulti.init`.

    Args:
        choice: What to build.
        request: The call.
        env: This process's environment, to which NCCL's variables are added.
        say: Takes each line for the person.

    Raises:
        UsageError: The settings cannot be honoured, the devices are not
            there, or TensorFlow was used before.
    """
    notes = communication_lib.check(
        request.communication,
        strategy=choice.kind,
        device=choice.device,
        replicas=choice.replicas,
        workers=choice.cluster.size if choice.cluster else 1,
        nccl_version=communication_lib.installed_nccl(),
    )
    exported = communication_lib.environment(request.communication, env)
    for line in choice.notes + notes + exported.notes:
        say(line)
    # NCCL reads them when the first gradient is reduced, so it is not late.
    env.update(exported.variables)
    found = _install(choice, request.communication, request)
    if choice.cluster is not None:
        tell_at_an_uncaught_exception(choice.cluster)
    return found


def _install(
    choice: Choice, communication: Communication, request: Request | None
) -> Installed:
    configure_devices(choice.device, choice.replicas)
    strategy = build_strategy(
        choice.kind,
        choice.device,
        choice.replicas,
        choice.cluster,
        communication,
    )
    if choice.kind != "one":
        keras3.apply(strategy)
    record = Installed(
        strategy=strategy,
        choice=choice,
        communication=communication,
        request=request,
    )
    setattr(tf_context.context(), _ATTRIBUTE, record)
    return record
