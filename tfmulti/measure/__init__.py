"""What a run measured: records, medians, curves, and the closing summary.

No TensorFlow here. Training hands over plain numbers; these modules keep
them (`journal`), reduce them (`statistics`), draw them (`curves`, `grid`) and
say them (`summary`). Matplotlib is imported when a picture is drawn.
"""

from __future__ import annotations

from tfmulti.measure.journal import (
    METRICS,
    append_epoch,
    check_fresh,
    read_epochs,
)
from tfmulti.measure.records import EpochRecord, RunSummary
from tfmulti.measure.statistics import median, steady_rate, steady_step_ms
from tfmulti.measure.summary import epoch_line, summary_text

__all__ = [
    "METRICS",
    "EpochRecord",
    "RunSummary",
    "append_epoch",
    "check_fresh",
    "epoch_line",
    "median",
    "read_epochs",
    "steady_rate",
    "steady_step_ms",
    "summary_text",
]
