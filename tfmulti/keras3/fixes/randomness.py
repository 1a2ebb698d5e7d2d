"""Fault: all replicas draw the same random numbers.

Dropout, augmentation and noise repeat on each replica; unseeded draws inside
a step crash, since Keras keeps their generator per thread.
"""

from __future__ import annotations

from tfmulti.keras3 import randomness
from tfmulti.keras3.patching import Fix, Patch

FIX = Fix(
    name="randomness",
    fault="dropout, augmentation and noise are identical on all replicas",
    upstream="https://github.com/keras-team/keras/issues/20611",
    versions="keras 3.15",
    patches=(
        Patch(
            target="keras.src.random.seed_generator:SeedGenerator",
            attribute="next",
            wrap=randomness.independent_next,
            digest="46839926742a",
        ),
    ),
)
