"""Real text that every machine has: the standard library's own source.

Which files are read and in which order is fixed by their names, so that two
machines with the same Python see the same bytes: files are ordered by a hash
of their path, which mixes the subjects, and the last of them are held out.
Left out are installed packages, tests (many systems leave them out as well)
and generated tables.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tfmulti.data import windows
from tfmulti.data.spec import find_python_source

LICENCE = "Python Software Foundation License"
DESCRIPTION = "source text of the Python standard library, as bytes"
HELD_OUT = 0.05

_LEFT_OUT = frozenset(
    {
        "site-packages", "dist-packages", "__pycache__", "test", "tests",
        "idle_test", "encodings", "pydoc_data", "lib2to3",
    }
)


def files() -> tuple[Path, ...]:
    """Lists the source files in their fixed order.

    Raises:
        UsageError: This Python ships no source text.
    """
    folder = find_python_source()
    found = [
        path
        for path in folder.rglob("*.py")
        if not _LEFT_OUT & set(path.relative_to(folder).parts)
    ]

    def rank(path: Path) -> str:
        name = path.relative_to(folder).as_posix()
        return hashlib.sha256(name.encode()).hexdigest()

    return tuple(sorted(found, key=rank))


def sources(
    context: int,
) -> tuple[windows.WindowSource, windows.WindowSource]:
    """Gives the train and the held-out part.

    Args:
        context: Bytes in a window's input.

    Returns:
        Sources of (int32 [context], int32 [context]); no file is in both.
    """
    head, tail = windows.split_tail(
        windows.stream_of(files()), HELD_OUT, at_files=True
    )
    return (
        windows.WindowSource(windows.open_stream(head), context),
        windows.WindowSource(windows.open_stream(tail), context),
    )
