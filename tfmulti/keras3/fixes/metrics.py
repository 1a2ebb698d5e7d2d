"""Fault: a tracker that is given one number a step weighs replicas alike.

The mean of a custom `train_step`'s loss over uneven parts of a batch is then
not the mean over the batch.
"""

from __future__ import annotations

from tfmulti.keras3 import metrics
from tfmulti.keras3.patching import Fix, Patch

FIX = Fix(
    name="metrics",
    fault="means of per-step values weigh uneven parts of a batch alike",
    upstream="",
    versions="keras 3.15",
    patches=(
        Patch(
            target="keras.src.metrics.reduction_metrics:Mean",
            attribute="update_state",
            wrap=metrics.weighted_scalar,
            digest="95d8f56903ba",
        ),
    ),
)
