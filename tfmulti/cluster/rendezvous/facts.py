"""What has to be equal on all workers, and what to say where it is not.

Facts are names with short texts: {"keras": "3.15.1", "config epochs": "3"}.
They hold no path, no argument of a script and nothing of the environment:
these may differ between hosts, and may be secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any

from tfmulti.cluster.rendezvous.wire import Stranger
from tfmulti.version import VERSION

Facts = Mapping[str, str]


def versions(
    installed: Callable[[str], str] = metadata.version,
) -> dict[str, str]:
    """Gives the versions that all workers must share."""
    found = {"tfmulti": VERSION}
    for package in ("tensorflow", "keras"):
        try:
            found[package] = installed(package)
        except metadata.PackageNotFoundError:
            found[package] = "none"
    return found


def flat(document: Any, name: str) -> dict[str, str]:
    """Gives a JSON document as facts, one for each value in it."""
    return dict(_flat(document, name))


def _flat(document: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(document, Mapping):
        for key in sorted(document):
            yield from _flat(document[key], f"{name} {key}")
    else:
        yield name, str(document)


def check_hello(hello: Mapping[str, Any]) -> Mapping[str, Any]:
    """Checks what another worker says of itself when it meets this one.

    Raises:
        Stranger: It is not what a worker says.
    """
    kinds = {
        "index": int,
        "workers": list,
        "facts": dict,
        "time": float,
        "reports": bool,
        "fault": str,
    }
    if any(not isinstance(hello.get(k), kinds[k]) for k in kinds):
        raise Stranger("not a hello")
    texts = [*hello["workers"], *hello["facts"].values()]
    if not all(isinstance(text, str) for text in texts):
        raise Stranger("not a hello")
    return hello


def check_report(
    report: Mapping[str, Any], size: int
) -> Mapping[str, Any]:
    """Checks what a worker of `size` reports to the chief.

    Raises:
        Stranger: It is not what a worker reports.
    """
    awaits = report.get("awaits")
    places = {str(index) for index in range(size)}
    if (
        not isinstance(awaits, dict)
        or not set(awaits) <= places
        or not isinstance(report.get("fault"), str)
        or not isinstance(report.get("ready"), bool)
    ):
        raise Stranger("not a report")
    return report


def difference(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> str | None:
    """Says in what two workers differ, in the same words on both sides.

    Args:
        first: "index", "workers" and "facts" of one.
        second: Those of the other.

    Returns:
        One sentence, or None where they agree.
    """
    one, other = sorted((first, second), key=lambda hello: hello["index"])
    if one["workers"] != other["workers"]:
        return (
            f"worker {one['index']} has another list of workers "
            f"({', '.join(one['workers'])}) than worker {other['index']} "
            f"({', '.join(other['workers'])}). Give all workers the same "
            "list, in the same order."
        )
    if one["index"] == other["index"]:
        return (
            f"two workers say that they are worker {one['index']}. Give "
            "each worker an index of its own."
        )
    names = [
        name
        for name in sorted(one["facts"].keys() | other["facts"].keys())
        if one["facts"].get(name) != other["facts"].get(name)
    ]
    if not names:
        return None
    told = "; ".join(
        f"{name} is {one['facts'].get(name, 'not set')} on worker "
        f"{one['index']} and {other['facts'].get(name, 'not set')} on "
        f"worker {other['index']}"
        for name in names[:5]
    )
    return f"the workers differ: {told}. Start all of them alike."
