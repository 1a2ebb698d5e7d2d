"""Pytest's side: puts a mode in force around each test, writes outcomes.

Loaded with `-p tests.keras_suite.plugin` into a process that runs nothing but
Keras's tests. Each outcome is appended to a file as one JSON line, and a line
before each test, so that the runner knows which test a process died in:

    {"id": "keras/src/...::Test::test", "begun": true}
    {"id": "keras/src/...::Test::test", "outcome": "passed", "text": "", ...}
    {"file": "keras/src/...", "text": "why it cannot be collected"}

Every mode has two logical CPU devices, and seeds the generators alike before
each test, so that a mode differs from another by nothing but itself.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context as tf_context

from tests.keras_suite import absent
from tfmulti import keras3
from tfmulti.strategy import (
    adopted,
    build_strategy,
    configure_devices,
    install,
    installed,
)

REPLICAS = 2
SEED = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the runner's options."""
    parser.addoption("--suite-mode", required=True)
    parser.addoption("--suite-outcomes", required=True, type=Path)


def pytest_configure(config: pytest.Config) -> None:
    """Puts the mode in force."""
    for marker in ("requires_trainable_backend", "multi_device"):
        config.addinivalue_line("markers", f"{marker}: Keras's own")
    mode = config.getoption("--suite-mode")
    file = config.getoption("--suite-outcomes")
    config.pluginmanager.register(Outcomes(file))
    # Keras looks for optional packages when it is first imported.
    assert keras.backend.backend() == "tensorflow"
    configure_devices("CPU", REPLICAS)
    if mode == "layer":
        keras3.apply(build_strategy("mirrored", "CPU", REPLICAS))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out what Keras itself leaves out for TensorFlow."""
    skip = pytest.mark.skip(reason="Keras runs it with jax and torch only")
    for item in items:
        if item.get_closest_marker("multi_device"):
            item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Lets test files be imported that name absent packages."""
    del session
    with absent.stand_ins():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Counts a test that imports an absent package itself as left out."""
    report = yield
    package = absent.named_in(call.excinfo.value) if call.excinfo else None
    if package is not None:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, absent.reason(package))
    return report


@pytest.fixture(autouse=True)
def _mode_around_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    random.seed(SEED)
    np.random.seed(SEED)
    tf.random.set_seed(SEED)
    mode = request.config.getoption("--suite-mode")
    with _around(mode):
        yield


@contextlib.contextmanager
def _around(mode: str) -> Iterator[None]:
    if not mode.endswith("mirrored"):
        yield
        return
    # A test that resets TensorFlow's context takes the strategy with it.
    job = installed() or install("mirrored", "CPU", REPLICAS)
    if mode == "stock_mirrored":
        keras3.undo()
    before = tf_context.context()
    with adopted(job, say=lambda line: None):
        yield
    if tf_context.context() is not before:
        tf.distribute.experimental_set_strategy(None)


class Outcomes:
    """Writes outcomes as they come.

    Args:
        file: Where to; appended to.
    """

    def __init__(self, file: Path):
        self._file = file
        self._outcomes: dict[str, tuple[str, str]] = {}

    def _write(self, **values: Any) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(values) + "\n")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Notes a file that cannot be collected, or is skipped whole."""
        if not report.passed:
            self._write(file=report.nodeid, text=str(report.longrepr))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Notes that a test begins."""
        self._outcomes[nodeid] = ("passed", "")
        self._write(id=nodeid, begun=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes up a part of a test: set-up, call, subtest, tear-down."""
        if report.failed:
            text = self._outcomes[report.nodeid][1]
            text = f"{text}\n{report.longreprtext}".strip()
            self._outcomes[report.nodeid] = ("failed", text)
        elif report.skipped and self._outcomes[report.nodeid][0] == "passed":
            self._outcomes[report.nodeid] = ("skipped", _reason(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Writes the outcome of a test that has ended."""
        outcome, text = self._outcomes.pop(nodeid)
        self._write(id=nodeid, outcome=outcome, text=text)


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    return report.longreprtext
