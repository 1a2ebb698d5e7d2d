"""Fault: synchronised BatchNormalization costs five collectives a layer."""

from __future__ import annotations

from tfmulti.keras3 import normalization
from tfmulti.keras3.patching import Fix, Patch

FIX = Fix(
    name="normalization",
    fault="BatchNormalization(synchronized=True) reduces one value at a time",
    upstream="",
    versions="keras 3.15",
    patches=(
        Patch(
            target="keras.src.backend.tensorflow.nn",
            attribute="_compute_moments_sync",
            wrap=normalization.packed_moments,
            digest="4ef59a47d67b",
        ),
    ),
)
