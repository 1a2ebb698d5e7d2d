"""Fault: a `train_step` sees its replica's gradient, not the batch's.

Whatever it does with it before the optimizer (clipping, noise, logging)
differs from one device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfmulti.keras3 import build, gradients
from tfmulti.keras3.patching import Fix, Patch


def _gradient(original: Callable[..., Any]) -> Callable[..., Any]:
    return build.trial_gradient(gradients.global_gradient(original))


FIX = Fix(
    name="gradients",
    fault="tape.gradient in a train_step gives one replica's part only",
    upstream="",
    versions="tensorflow 2.21",
    patches=(
        Patch(
            target="tensorflow.python.eager.backprop:GradientTape",
            attribute="gradient",
            wrap=_gradient,
            digest="bed4d4771d99",
        ),
    ),
)
