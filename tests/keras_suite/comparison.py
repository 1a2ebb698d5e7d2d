"""Outcomes of a mode against those of stock, and against what is known.

    stock    passed   passed   failed
    layer    passed   failed   passed
                      └── differ: each needs a cause in `differences.py`

A test that stock leaves out is not compared. A listed difference that does
not occur (though its test ran in both modes) is an error too, so that the
list stays true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.keras_suite.runner import Outcome

Outcomes = Mapping[str, Outcome]


@dataclass(frozen=True, kw_only=True)
class Differences:
    """What is not as in stock.

    Attributes:
        listed: Test id -> cause.
        unlisted: Test id -> "passed in stock, failed here" and the traceback.
        gone: Listed tests that ended as in stock.
    """

    listed: dict[str, str]
    unlisted: dict[str, str]
    gone: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether the list says all that there is, and no more."""
        return not self.unlisted and not self.gone


def compare(
    stock: Outcomes, other: Outcomes, known: Mapping[str, str]
) -> Differences:
    """Compares a mode's outcomes with stock's.

    Args:
        stock: Test id -> outcome.
        other: The same of the other mode.
        known: Test id -> cause of a difference in that mode.
    """
    found: dict[str, str] = {}
    for name, outcome in stock.items():
        there = other.get(name, Outcome(kind="missing"))
        if outcome.kind != there.kind:
            found[name] = (
                f"{outcome.kind} in stock, {there.kind} here\n"
                f"{there.text or outcome.text}"
            )
    return Differences(
        listed={n: known[n] for n in found if n in known},
        unlisted={n: text for n, text in found.items() if n not in known},
        gone=tuple(n for n in known if n in stock and n not in found),
    )


def table(results: Mapping[str, Outcomes], modes: Sequence[str]) -> str:
    """Gives a row for each file: passed/failed/skipped in each mode.

    Args:
        results: Mode -> outcomes.
        modes: The columns, in order.
    """
    files = sorted({file_of(n) for m in modes for n in results[m]})
    width = max([len(f) for f in files], default=0) + 2
    rows = ["file".ljust(width) + "".join(f"{m:>16}" for m in modes)]
    for file in files:
        cells = (_cell(results[mode], file) for mode in modes)
        rows.append(file.ljust(width) + "".join(f"{c:>16}" for c in cells))
    totals = (_cell(results[mode], "") for mode in modes)
    rows.append("all".ljust(width) + "".join(f"{c:>16}" for c in totals))
    return "\n".join(rows)


def file_of(test: str) -> str:
    """Gives a test's file, relative to `keras/src`."""
    return test.split("::")[0].removeprefix("keras/src/")


def _cell(outcomes: Outcomes, file: str) -> str:
    kinds = Counter(
        o.kind
        for name, o in outcomes.items()
        if not file or file_of(name) == file
    )
    if not kinds:
        return "-"
    return "/".join(str(kinds[k]) for k in ("passed", "failed", "skipped"))


def left_out(outcomes: Outcomes) -> Counter[str]:
    """Counts the tests that were left out for want of a package, by file."""
    return Counter(
        file_of(name)
        for name, outcome in outcomes.items()
        if "left out: needs" in outcome.text
    )
