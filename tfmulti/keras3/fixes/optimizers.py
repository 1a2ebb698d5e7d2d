"""Fault: optimizers clip and check each replica's gradient before the sum.

`clipnorm`, `global_clipnorm` and `clipvalue` clip something else, loss
scaling asks one replica, and accumulation or EMA overwrite crash ("merge_call
called while defining a new graph").
"""

from __future__ import annotations

from collections.abc import Callable

from tfmulti.keras3 import build, optimizers
from tfmulti.keras3.patching import Fix, Patch

_BASE = "keras.src.optimizers.base_optimizer:BaseOptimizer"
_SCALED = "keras.src.optimizers.loss_scale_optimizer:LossScaleOptimizer"
_TENSORFLOW = "keras.src.backend.tensorflow.optimizer:TFOptimizer"


def _apply(original: Callable[..., None]) -> Callable[..., None]:
    return build.noting_apply(optimizers.reduce_then_apply(original))


FIX = Fix(
    name="optimizers",
    fault="gradients are clipped and checked before they are summed",
    upstream="https://github.com/keras-team/keras/issues/20582",
    versions="keras 3.15",
    patches=(
        Patch(
            target=_BASE,
            attribute="apply",
            wrap=_apply,
            digest="72c9ffc2e5a1",
        ),
        Patch(
            target=_SCALED,
            attribute="apply",
            wrap=_apply,
            digest="5b420bee98c3",
        ),
        Patch(
            target=_SCALED,
            attribute="_tf_apply",
            wrap=optimizers.common_apply,
            digest="d492e03d6b8f",
        ),
        Patch(
            target=_BASE,
            attribute="_clip_gradients",
            wrap=optimizers.reduce_then_clip,
            digest="1692288341cd",
        ),
        Patch(
            target=_TENSORFLOW,
            attribute="_all_reduce_sum_gradients",
            wrap=optimizers.already_reduced,
            digest="461b39f7ed0e",
        ),
    ),
)
