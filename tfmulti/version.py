"""This package's version, and the versions of others it was tested with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import metadata

VERSION = "0.1.0"

# Package -> release series (major.minor) that the whole test suite passed on.
TESTED: Mapping[str, tuple[str, ...]] = {
    "tensorflow": ("2.21",),
    "keras": ("3.15",),
}


def untested(
    installed: Callable[[str], str] = metadata.version,
) -> tuple[str, ...]:
    """Lists the installed packages that this release was not tested with.

    Args:
        installed: Gives the version of an installed distribution.

    Returns:
        One sentence for each package outside its tested series.
    """
    found = []
    for package, series in TESTED.items():
        version = installed(package)
        if ".".join(version.split(".")[:2]) not in series:
            found.append(
                f"{package} {version} is installed; tfmulti {VERSION} was "
                f"tested with {', '.join(s + '.x' for s in series)}."
            )
    return tuple(found)
