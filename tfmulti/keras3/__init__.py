"""What Keras 3 gets wrong under tf.distribute, and what puts it right.

    step, reduction, batches        what a step is, sums over replicas, data
    losses, gradients, optimizers,
    metrics, state, randomness      one idea each, plain functions
    build, engine, prediction       the step engine
    trainer                         where Keras looks for it
    agreement, seeds, inputs,
    alike, callbacks, saving        several workers act as one
    patching, fixes/                what is replaced where; undone by `undo`

Nothing is replaced at import. `apply(strategy)` puts the fixes in force and
`undo()` takes them back; a model made outside any strategy runs Keras's own
code all the while.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

import keras
import tensorflow as tf

from tfmulti.keras3 import seeds
from tfmulti.keras3 import step as step_lib
from tfmulti.keras3.fixes import FIXES
from tfmulti.keras3.patching import Applied

VERIFIED = ("3.15",)


@functools.cache
def applied() -> Applied:
    """Gives this process's one record of what is in force."""
    return Applied()


def apply(strategy: tf.distribute.Strategy) -> Applied:
    """Makes Keras right under `strategy`; safe to call again.

    Args:
        strategy: The strategy in whose scope models will be made.

    Returns:
        The record of the fixes in force.
    """
    record = applied()
    verified = ".".join(keras.__version__.split(".")[:2]) in VERIFIED
    for fix in FIXES:
        changed = () if verified else fix.changed()
        if changed:
            logging.getLogger("tfmulti").warning(
                "fix %r is left out: Keras %s has another %s than the "
                "verified versions (%s)",
                fix.name,
                keras.__version__,
                ", ".join(changed),
                ", ".join(VERIFIED),
            )
            continue
        record.apply(fix)
    _allow_local_updates(strategy.extended)
    seeds.agree_on_seeds(strategy)
    return record


def undo() -> None:
    """Takes every fix back."""
    applied().undo()


def _allow_local_updates(extended: Any) -> None:
    """Lets `step.local_updates` switch this strategy's merging off."""
    original = type(extended)._use_merge_call

    def use_merge_call() -> bool:
        return not step_lib.local_updates_only() and original(extended)

    extended._use_merge_call = use_merge_call
