"""N replicas give what one device gives: the table, program by program.

The processes of a topology run all chosen programs in sequence, once, and the
tests below read what they left: to start TensorFlow, and to trace a program
on one device, costs more than the program itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.equivalence.comparison import distance, judge, relative_error
from tests.equivalence.program import Program
from tests.equivalence.programs import all_programs
from tests.equivalence.runner import Outcome, run_topology

PROGRAMS = {program.name: program for program in all_programs()}

Run = Callable[[str], Mapping[str, Outcome]]


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs the chosen programs in a topology, when it is first asked for.

    One device and two replicas are a process each, and run side by side; two
    workers are two processes.
    """
    chosen = _chosen(request)
    names = [name for name in PROGRAMS if name in chosen]
    with ThreadPoolExecutor(2) as pool:
        side_by_side = functools.cache(
            lambda topology: pool.submit(run_topology, topology, names)
        )

        def outcomes(topology: str) -> Mapping[str, Outcome]:
            right = side_by_side("one")
            if topology == "workers2x1":
                right.result()
            return side_by_side(topology).result()

        yield outcomes


def _chosen(request: pytest.FixtureRequest) -> set[str]:
    return {
        item.callspec.params["name"]
        for item in request.session.items
        if item.path.samefile(__file__) and hasattr(item, "callspec")
    }


def _check(program: Program, right: Outcome, got: Outcome) -> None:
    found = judge(right, got)
    assert found.error <= program.tolerance, (
        f"{found.where} is off by {found.error:.2g} (relative); "
        f"allowed: {program.tolerance:.2g}"
    )


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_mirrored_replicas_give_what_one_device_gives(
    run: Run, name: str
) -> None:
    got = run("mirrored2")[name]
    _check(PROGRAMS[name], run("one")[name], got)


@pytest.mark.workers
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_workers_give_what_one_device_gives(run: Run, name: str) -> None:
    _check(PROGRAMS[name], run("one")[name], run("workers2x1")[name])


def test_the_table_is_large_and_covers_the_reports() -> None:
    assert len(PROGRAMS) >= 130
    covered = {report for p in PROGRAMS.values() for report in p.reports}
    assert covered >= {
        "A01", "A02", "A03", "A05", "A06", "A07", "A08", "A09", "A10", "A11",
        "A14", "A15", "A16", "A17", "A18", "A22", "A25", "A26", "A27", "A28",
        "A30", "A32", "A45",
    }  # fmt: skip


def test_a_difference_is_measured_against_the_largest_entry() -> None:
    right = np.array([10.0, 0.001])
    assert relative_error(right, right + [0.0, 0.001]) == pytest.approx(1e-4)
    assert relative_error(right, right + [0.1, 0.0]) == pytest.approx(1e-2)


def test_what_cannot_be_compared_is_infinitely_far() -> None:
    one = np.ones(2)
    assert relative_error(one, np.ones(3)) == np.inf
    assert relative_error(one, one * np.nan) == np.inf
    assert relative_error(one * np.nan, one) == np.inf
    assert relative_error(one * np.nan, one * np.nan) == 0.0
    assert relative_error(np.array(["a"]), np.array(["b"])) == np.inf
    assert distance({"a": one}, {"b": one}).error == np.inf


def test_the_worst_worker_and_any_failure_count() -> None:
    good, bad = {"w": np.ones(1)}, {"w": np.ones(1) + 0.5}
    right = Outcome(results=(good,))
    assert judge(right, Outcome(results=(good, good))).error == 0.0
    assert judge(right, Outcome(results=(good, bad))).error == 0.5
    assert judge(right, Outcome(failure="died")).error == np.inf
    assert judge(Outcome(failure="died"), right).error == np.inf
