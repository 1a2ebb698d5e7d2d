"""The layer under test: two replicas in this process."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def two(devices):
    """A mirrored strategy of two replicas, with Keras mended."""
    from tfmulti import keras3
    from tfmulti.strategy import build_strategy

    strategy = build_strategy("mirrored", "CPU", 2)
    keras3.apply(strategy)
    return strategy


@pytest.fixture(scope="session")
def three(devices):
    """A mirrored strategy of three replicas, with Keras mended."""
    from tfmulti import keras3
    from tfmulti.strategy import build_strategy

    strategy = build_strategy("mirrored", "CPU", 3)
    keras3.apply(strategy)
    return strategy
