"""Fault: loss means are taken per replica and weighed 1/N each.

Uneven parts, masks and `mean_with_sample_weight` weigh wrongly, and a loss
that returns a scalar is not divided at all.
"""

from __future__ import annotations

from tfmulti.keras3 import losses
from tfmulti.keras3.patching import Fix, Patch

_LOSS = "keras.src.losses.loss"

FIX = Fix(
    name="losses",
    fault="masked, weighted and uneven losses differ from one device's",
    upstream="https://github.com/keras-team/keras/issues/19891",
    versions="keras 3.15",
    patches=(
        Patch(
            target=_LOSS,
            attribute="reduce_values",
            wrap=losses.reduce_values,
            digest="60b046214772",
        ),
        Patch(
            target=_LOSS,
            attribute="apply_mask",
            wrap=losses.apply_mask,
            digest="61d8938cd866",
        ),
        Patch(
            target=_LOSS,
            attribute="scale_loss_for_distribution",
            wrap=losses.scale_loss,
            digest="143cd8a5efb6",
        ),
        Patch(
            target=_LOSS,
            attribute="unscale_loss_for_distribution",
            wrap=losses.unscale_loss,
            digest="3903c7ed7f69",
        ),
    ),
)
