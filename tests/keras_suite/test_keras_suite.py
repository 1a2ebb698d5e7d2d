"""A part of Keras's own tests in each mode, and the comparison itself."""

from __future__ import annotations

import pytest

from tests.keras_suite import comparison, differences, files, runner
from tests.keras_suite.runner import Outcome

# Small files whose tests reach the engine, losses, callbacks and metrics.
LAYER_FILES = (
    "callbacks/early_stopping_test.py",
    "losses/loss_test.py",
    "optimizers/optimizer_test.py",
    "trainers/compile_utils_test.py",
)
MIRRORED_FILES = (
    "callbacks/csv_logger_test.py",
    "callbacks/early_stopping_test.py",
    "trainers/compile_utils_test.py",
    "trainers/trainer_test.py",
)
TRAINER_TESTS = " or ".join(
    (
        "test_callbacks_can_update_state",
        "test_fit_flow_graph",
        "test_fit_with_different_batch_size",
        "test_nested_input",
        "test_on_batch_methods_graph",
        "test_predict_flow_struct",
    )
)
KEYWORDS = {"layer": "", "mirrored": f"not TestTrainer or {TRAINER_TESTS}"}

PASSED, FAILED = Outcome(kind="passed"), Outcome(kind="failed", text="why")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "names"), [("layer", LAYER_FILES), ("mirrored", MIRRORED_FILES)]
)
def test_a_part_ends_as_it_does_in_stock(
    mode: str, names: tuple[str, ...]
) -> None:
    keyword = KEYWORDS[mode]
    stock = runner.run_files(names, "stock", keyword)
    other = runner.run_files(names, mode, keyword)
    assert not stock.uncollected
    kinds = [o.kind for o in stock.outcomes.values()]
    assert kinds.count("passed") > 40
    found = comparison.compare(
        stock.outcomes, other.outcomes, differences.known_in(mode)
    )
    assert not found.unlisted
    assert not found.gone


def test_every_suite_has_files() -> None:
    assert all(files.files_of(suite) for suite in files.SUITES)


def test_every_listed_difference_is_of_a_file_that_is_there() -> None:
    present = {f for suite in files.SUITES for f in files.files_of(suite)}
    listed = {
        comparison.file_of(name)
        for mode in files.MODES
        for name in differences.known_in(mode)
    }
    assert listed <= present


def test_comparison_names_what_differs() -> None:
    found = comparison.compare(
        {"a": PASSED, "b": PASSED, "c": FAILED, "d": PASSED},
        {"a": PASSED, "b": FAILED, "c": FAILED, "d": FAILED},
        {"d": "known"},
    )
    assert found.listed == {"d": "known"}
    assert found.unlisted == {"b": "passed in stock, failed here\nwhy"}
    assert not found.gone
    assert not found.right


def test_comparison_says_that_a_test_is_missing() -> None:
    found = comparison.compare({"a": PASSED}, {}, {})
    assert found.unlisted == {"a": "passed in stock, missing here\n"}


def test_a_listed_difference_that_is_gone_is_an_error() -> None:
    found = comparison.compare({"a": PASSED}, {"a": PASSED}, {"a": "known"})
    assert found.gone == ("a",)
    assert not found.right


def test_a_listed_test_that_was_not_run_is_none() -> None:
    assert comparison.compare({}, {}, {"a": "known"}).right
