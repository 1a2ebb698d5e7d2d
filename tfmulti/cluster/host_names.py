"""Slurm's short form of a list of hosts, written out.

    n[9-10]             n9 n10            in this order, never sorted as text
    n[001-003,7]        n001 n002 n003 n7
    r[1-2]n[0-1],login  r1n0 r1n1 r2n0 r2n1 login

And its short form of numbers per node: 2(x3),1 is 2 2 2 1.

https://slurm.schedmd.com/srun.html (--nodelist, SLURM_STEP_TASKS_PER_NODE)
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from tfmulti.errors import UsageError

# A comma outside of brackets.
_COMMA = re.compile(r",(?![^\[]*\])")
_PARTS = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?")

# More than any cluster has; a typing error may ask for billions.
MOST_HOSTS = 100_000


def expand_hosts(text: str) -> tuple[str, ...]:
    """Writes a list of hosts out, in its own order.

    Raises:
        UsageError: It is not such a list.
    """
    hosts: list[str] = []
    for name in _COMMA.split(text.strip()):
        if not name or _PARTS.sub("", name):
            raise _no_list(text)
        parts = [
            list(_numbers(match[1], text)) if match[2] is None else [match[2]]
            for match in _PARTS.finditer(name)
        ]
        hosts += map("".join, itertools.product(*parts))
        if len(hosts) > MOST_HOSTS:
            raise _no_list(text)
    return tuple(hosts)


def expand_counts(text: str) -> tuple[int, ...]:
    """Writes the numbers of tasks per node out: "2(x3),1" -> 2, 2, 2, 1.

    Raises:
        UsageError: It is not such a list.
    """
    counts: list[int] = []
    for part in text.strip().split(","):
        match = _COUNT.fullmatch(part)
        if match is None or int(match[2] or 1) > MOST_HOSTS:
            raise UsageError(
                received=f"tasks per node {text!r}",
                allowed='numbers such as "2(x3),1"',
                remedy="Start the job with srun, which sets them.",
            )
        counts += [int(match[1])] * int(match[2] or 1)
    return tuple(counts)


def _numbers(inside: str, text: str) -> Iterator[str]:
    """Lists what stands for a bracket: "1-3,007" -> 1 2 3 007."""
    for part in inside.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise _no_list(text)
        first, last = match[1], match[2] or match[1]
        if not 0 <= int(last) - int(first) < MOST_HOSTS:
            raise _no_list(text)
        for number in range(int(first), int(last) + 1):
            yield str(number).zfill(len(first))


def _no_list(text: str) -> UsageError:
    return UsageError(
        received=f"the list of hosts {text!r}",
        allowed='names such as "n[1-3,7],login"',
        remedy="Correct the list.",
    )
