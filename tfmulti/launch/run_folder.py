"""A run's folder belongs to one run at a time.

    no --run_dir    runs/NAME-TIME, made by this run; taken ones get -2, -3
    --run_dir DIR   made where it is missing; refused while another run lives

A run holds a lock (flock(2)) on DIR/.lock for as long as it lives. The system
gives it back however the run ends, so nothing stale is ever in the way.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
from collections.abc import Callable, Iterator

from tfmulti.errors import UsageError

LOCK = ".lock"


@contextlib.contextmanager
def claimed(
    path: str, *, automatic: bool, say: Callable[[str], None]
) -> Iterator[str]:
    """Makes a run's folder and keeps other runs out while the context lasts.

    Args:
        path: The folder.
        automatic: Whether its name is the command's own choice, which then
            gets a number where it is taken.
        say: Takes a line for the person.

    Yields:
        The folder's path.

    Raises:
        UsageError: Another run uses it, or it cannot be made or written.
    """
    try:
        folder = _make_new(path) if automatic else _make(path)
        descriptor = _open_lock(folder)
    except OSError as error:
        in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
        why = "a file is in the way" if in_the_way else error.strerror
        raise UsageError(
            received=f"--run_dir={path} ({why})",
            allowed="a folder that exists or can be made, and be written",
            remedy="Give another folder for --run_dir.",
        ) from None
    try:
        _lock(folder, descriptor, say)
        yield folder
    finally:
        os.close(descriptor)


def _make_new(path: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    for number in itertools.count(1):
        name = path if number == 1 else f"{path}-{number}"
        with contextlib.suppress(FileExistsError):
            os.mkdir(name)
            break
    return name


def _make(path: str) -> str:
    os.makedirs(path, exist_ok=True)
    return path


def _open_lock(folder: str) -> int:
    # Something is written too: on a full disk a file can still be made.
    descriptor = os.open(
        os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o666
    )
    try:
        os.pwrite(descriptor, b"\n", 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(folder: str, descriptor: int, say: Callable[[str], None]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            received=f"--run_dir={folder}, which a run that still lives uses",
            allowed="a folder of its own for each run",
            remedy="Give another --run_dir, or wait for that run to end.",
        ) from None
    except OSError as error:
        say(
            f"{folder} cannot be locked ({error.strerror}): take care that "
            "no other run uses it."
        )
