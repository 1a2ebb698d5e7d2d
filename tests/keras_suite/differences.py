"""Tests that do not end as in stock, each with the cause.

Only what must be so is listed: a test that looks at Keras's internals, or
one whose right outcome is another one under a strategy. A fault of the layer
is mended, not listed. The command fails for a difference that is not here,
and for one that is here and does not occur.
"""

from __future__ import annotations

from types import MappingProxyType

_EPOCH_ITERATOR = (
    "takes batches from Keras's internal TFEpochIterator by hand: the "
    "engine's come with the number of rows of each replica's part"
)
_OWN_STRATEGY = (
    "makes a strategy of one device and counts its batches: while a job has "
    "a strategy, scripts are given the job's, with two replicas"
)
_INITIAL_VALUE = (
    "gives a metric's variable an initial value that is not zero: each "
    "replica has a copy, and what is read is their sum"
)

# Mode -> cause -> tests, relative to `keras/src`.
_DIFFERENCES = MappingProxyType(
    {
        "layer": {
            _EPOCH_ITERATOR: (
                "backend/tensorflow/distribute_test.py::DistributeTest::"
                "test_epoch_iterator",
            ),
        },
        "mirrored": {
            _OWN_STRATEGY: (
                "trainers/data_adapters/tf_dataset_adapter_test.py::"
                "TestTFDatasetAdapter::"
                "test_distributed_datasets_from_function_adapter_properties",
            ),
            _INITIAL_VALUE: (
                "metrics/iou_metrics_test.py::MeanIoUTest::test_big_chunk",
            ),
        },
    }
)
JUDGED = tuple(_DIFFERENCES)


def known_in(mode: str) -> dict[str, str]:
    """Gives the known differences of a mode: test id -> cause."""
    return {
        f"keras/src/{name}": cause
        for cause, names in _DIFFERENCES.get(mode, {}).items()
        for name in names
    }
