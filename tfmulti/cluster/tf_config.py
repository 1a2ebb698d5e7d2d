"""TF_CONFIG: the variable in which TensorFlow itself looks for the cluster.

    {"cluster": {"worker": ["host1:2222", "host2:2222"]},
     "task": {"type": "worker", "index": 0}}

Every worker gets the same "cluster" and a "task" of its own. An optional
"chief" entry (at most one address) is worker 0, and the "worker" list follows
it. Operators add keys of theirs ("environment": "cloud"); those are ignored,
as TensorFlow does. An empty variable counts as unset.

Format: https://www.tensorflow.org/guide/distributed_training#TF_CONFIG
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from tfmulti.cluster.record import Cluster
from tfmulti.errors import UsageError

TF_CONFIG = "TF_CONFIG"

_EXAMPLE = (
    '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)

# Kinds of task that TensorFlow knows and synchronous training has no use for.
_UNUSED_KINDS: Mapping[str, str] = {
    "ps": "Drop the parameter servers: every worker holds all weights.",
    "evaluator": "Evaluate in a run of its own, outside this cluster.",
}


def from_tf_config(env: Mapping[str, str]) -> Cluster | None:
    """Reads the cluster from TF_CONFIG.

    Args:
        env: The environment of this process.

    Returns:
        The cluster seen from the task that TF_CONFIG names, or None where it
        is unset or empty.

    Raises:
        UsageError: TF_CONFIG is set, but does not name a worker among
            workers.
    """
    text = env.get(TF_CONFIG, "").strip()
    if not text:
        return None
    document = _parse(text)
    kinds = _cluster(document)
    chief, workers = _addresses(kinds, "chief"), _addresses(kinds, "worker")
    if len(chief) > 1:
        _refuse(f"with {len(chief)} chiefs", "one chief at most")
    kind, index = _task(document)
    if kind not in kinds:
        _refuse(
            f"with task type {kind!r}",
            f"a type that its cluster lists: {', '.join(sorted(kinds))}",
        )
    listed = chief if kind == "chief" else workers
    if not listed:
        _refuse(
            f"with no address of type {kind!r}", "a list of host:port addresses"
        )
    if not 0 <= index < len(listed):
        _refuse(
            f"with task index {index} of type {kind!r}",
            f"0 to {len(listed) - 1}, since its cluster lists "
            f"{len(listed)} of that type",
        )
    return Cluster(
        workers=chief + workers,
        index=index if kind == "chief" else len(chief) + index,
        source=TF_CONFIG,
        evidence=f"task {kind} {index}",
    )


def _parse(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        _refuse(
            f"that is not JSON ({error.msg} at character {error.pos})",
            f"JSON such as {_EXAMPLE}",
        )
    except RecursionError:
        _refuse("that is nested too deeply", f"JSON such as {_EXAMPLE}")
    if not isinstance(document, dict):
        _refuse(
            f"that is a JSON {type(document).__name__}",
            f"a JSON object such as {_EXAMPLE}",
        )
    return document


def _cluster(document: Mapping[str, Any]) -> Mapping[str, Any]:
    if "sparseCluster" in document:
        _refuse(
            'with "sparseCluster"',
            'a "cluster" that lists all workers to every worker',
            "Switch off enableDynamicWorker in the TFJob.",
        )
    kinds = document.get("cluster")
    if not isinstance(kinds, dict) or not kinds:
        _refuse('without a "cluster"', f"both keys, as in {_EXAMPLE}")
    # An evaluator reads checkpoints beside the job and takes no part in it.
    kinds = {k: v for k, v in kinds.items() if k != "evaluator"}
    for kind in kinds:
        _check_kind(kind)
    return kinds


def _task(document: Mapping[str, Any]) -> tuple[str, int]:
    task = document.get("task")
    if not isinstance(task, dict) or "type" not in task:
        _refuse('without a "task"', f"both keys, as in {_EXAMPLE}")
    _check_kind(task["type"])
    index = task.get("index")
    # Some tools write numbers as text; TensorFlow reads those too.
    if isinstance(index, str) and index.isdecimal():
        index = int(index)
    if not isinstance(index, int) or isinstance(index, bool):
        _refuse(f"with task index {index!r}", "a whole number from 0")
    return task["type"], index


def _check_kind(kind: object) -> None:
    if kind in ("chief", "worker"):
        return
    remedy = _UNUSED_KINDS.get(
        str(kind), 'Use "worker" (and "chief" for the first, if you wish).'
    )
    _refuse(f"with task type {kind!r}", '"worker" and "chief"', remedy)


def _addresses(kinds: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    listed = kinds.get(kind, [])
    if not isinstance(listed, list):
        _refuse(
            f"whose {kind!r} is {listed!r}", "a list of host:port addresses"
        )
    return tuple(listed)


def _refuse(
    what: str, allowed: str, remedy: str = "Correct TF_CONFIG, or unset it."
) -> NoReturn:
    raise UsageError(
        received=f"TF_CONFIG {what}", allowed=allowed, remedy=remedy
    )
