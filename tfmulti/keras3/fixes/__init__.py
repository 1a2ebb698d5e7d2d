"""All fixes, in the order in which they are applied. One file, one fault."""

from __future__ import annotations

from tfmulti.keras3.fixes import (
    agreement,
    callbacks,
    engine,
    gradients,
    losses,
    metrics,
    normalization,
    optimizers,
    randomness,
    saving,
    variables,
)
from tfmulti.keras3.patching import Fix

FIXES: tuple[Fix, ...] = (
    variables.FIX,
    losses.FIX,
    gradients.FIX,
    metrics.FIX,
    optimizers.FIX,
    randomness.FIX,
    normalization.FIX,
    engine.FIX,
    agreement.FIX,
    callbacks.FIX,
    saving.FIX,
)
