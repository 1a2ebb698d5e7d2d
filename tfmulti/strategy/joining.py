"""A worker of a cluster, before TensorFlow connects it with the others.

The same steps that the launcher takes, for code that calls `tfmulti.init`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, MutableMapping

from tfmulti.cluster import Cluster, own_gpus, rendezvous
from tfmulti.communication import Communication
from tfmulti.hardware import CUDA_VISIBLE_DEVICES, visible_gpus
from tfmulti.strategy.choose import Choice


def take_own_gpus(
    cluster: Cluster | None, env: MutableMapping[str, str]
) -> None:
    """Hides the GPUs of the other workers on this host from TensorFlow.

    Args:
        cluster: The workers, seen from this one.
        env: This process's environment, which CUDA reads at its first use.

    Raises:
        UsageError: There are fewer GPUs than workers.
    """
    if cluster is None or cluster.local_size == 1:
        return
    names = visible_gpus(env).names
    mine = own_gpus(names, cluster)
    if mine != names:
        env[CUDA_VISIBLE_DEVICES] = ",".join(mine)


def meeting(
    choice: Choice,
    communication: Communication,
    env: Mapping[str, str],
    say: Callable[[str], None],
) -> contextlib.AbstractContextManager[None]:
    """Gives the meeting of the workers, within which the strategy is built.

    Args:
        choice: What to build, the same on all workers.
        communication: How they reduce gradients.
        env: This process's environment.
        say: Takes each line for the person.
    """
    if choice.cluster is None:
        return contextlib.nullcontext()
    record = {
        "replicas": choice.replicas,
        "device": choice.device,
        "communication": communication.to_json(),
    }
    facts = rendezvous.versions() | rendezvous.flat(record, "init")
    terms = rendezvous.settings(env, choice.cluster, facts)
    return rendezvous.met(choice.cluster, terms, say)
