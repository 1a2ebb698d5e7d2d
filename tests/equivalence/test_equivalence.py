"""The table of programs and how its cells are judged.

The table itself is run by `python -m tests.equivalence`: to start TensorFlow,
and to trace a program on one device, costs more than the program itself, so
that the processes of a topology run all programs in sequence.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType

import keras
import numpy as np
import pytest

from tests.equivalence import programs
from tests.equivalence.comparison import distance, judge, relative_error
from tests.equivalence.programs import all_programs
from tests.equivalence.runner import Outcome

PROGRAMS = {program.name: program for program in all_programs()}


def test_the_table_is_large_and_covers_the_reports() -> None:
    assert len(PROGRAMS) == len(all_programs()) >= 250
    covered = {report for p in PROGRAMS.values() for report in p.reports}
    assert covered >= {
        "A01", "A02", "A03", "A05", "A06", "A07", "A08", "A09", "A10", "A11",
        "A14", "A15", "A16", "A17", "A18", "A22", "A25", "A26", "A27", "A28",
        "A30", "A32", "A45",
    }  # fmt: skip


BASE = "what the others are made of"
NO_PROGRAM_OF_THEIR_OWN = {
    "Callback": BASE,
    "LearningRateSchedule": BASE,
    "Loss": BASE,
    "Metric": BASE,
    "Optimizer": BASE,
    "CallbackList": "what fit makes of the callbacks",
    "History": "every fit has one",
    "ScheduleFreeAdamW": "no right value: one device makes its slot anew",
    "Circle": "compares a batch's examples; a replica sees its own part",
    "TensorBoard": "leaves a log, no values; see tests/keras3",
    "OrbaxCheckpoint": "needs a package of its own",
    "RemoteMonitor": "sends to a server and decides nothing",
}


def _words_of_code(source: str) -> set[str]:
    """Gives the names that the code uses; comments and prose don't count."""
    words: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word):
                words.add(word)
            case ast.Constant(value=str(word)) if word.isidentifier():
                words.add(word)
    return words


@pytest.mark.parametrize(
    "module",
    [
        keras.optimizers,
        keras.optimizers.schedules,
        keras.losses,
        keras.metrics,
        keras.callbacks,
    ],
)
def test_every_class_of_keras_occurs_in_a_program(module: ModuleType) -> None:
    folder = Path(programs.__file__).parent
    used = [_words_of_code(path.read_text()) for path in folder.glob("*.py")]
    words = set().union(*used)
    names = {n for n, value in vars(module).items() if inspect.isclass(value)}
    assert len(names) > 5
    assert names - words <= NO_PROGRAM_OF_THEIR_OWN.keys()


def test_a_class_that_is_only_spoken_of_has_no_program() -> None:
    source = '"""Adam is left out."""\nM.Mean()  # Sum\nget("Lion")\n'
    assert _words_of_code(source) == {"M", "Mean", "get", "Lion"}


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
