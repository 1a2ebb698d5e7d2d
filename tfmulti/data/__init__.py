"""Input that never starves a GPU: exactly once, and resumable at any step.

    "digits", "images:DIR", ...   spec      what `--data` says (no TensorFlow)
    (seed, epoch, position)       order     which example is read when, and by
                                            whom (no TensorFlow)
    {"global_step": 1203, ...}    position  where a run goes on, if the data
                                            are the same (no TensorFlow)
    len() and fetch(indices)      source    random access to examples; one
                                            file for each kind of store
    sources -> source             compose   a part, a repetition, a mixture
    Source, order -> Dataset      delivery  batches for one device or for each
                                            replica of a strategy
    spec -> train, validation     loading   what training calls

Everything is reached by a global step: the state of the input is that one
number, and `position` saves it with what it belongs to. Importing this
package loads no TensorFlow; `check` and `parse` never do.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfmulti.data.bad_records import BadRecords
    from tfmulti.data.compose import Mixture, Repeat, Take
    from tfmulti.data.counts import Counts, count_rows
    from tfmulti.data.delivery import (
        distributed,
        global_batches,
        worker_batches,
    )
    from tfmulti.data.loading import load
    from tfmulti.data.order import Order, rows_of_replica, steps_per_epoch
    from tfmulti.data.position import Position
    from tfmulti.data.source import Source
    from tfmulti.data.spec import DataSpec, check, parse
    from tfmulti.data.splits import DataInfo, DataSplits

# Public name -> the file that defines it.
_HOME = {
    "BadRecords": "bad_records",
    "Counts": "counts",
    "DataInfo": "splits",
    "DataSpec": "spec",
    "DataSplits": "splits",
    "Mixture": "compose",
    "Order": "order",
    "Position": "position",
    "Repeat": "compose",
    "Source": "source",
    "Take": "compose",
    "check": "spec",
    "count_rows": "counts",
    "distributed": "delivery",
    "global_batches": "delivery",
    "load": "loading",
    "parse": "spec",
    "rows_of_replica": "order",
    "steps_per_epoch": "order",
    "worker_batches": "delivery",
}

__all__ = [
    "BadRecords",
    "Counts",
    "DataInfo",
    "DataSpec",
    "DataSplits",
    "Mixture",
    "Order",
    "Position",
    "Repeat",
    "Source",
    "Take",
    "check",
    "count_rows",
    "distributed",
    "global_batches",
    "load",
    "parse",
    "rows_of_replica",
    "steps_per_epoch",
    "worker_batches",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tfmulti.data' has no {name!r}")
    return getattr(importlib.import_module(f"tfmulti.data.{_HOME[name]}"), name)
