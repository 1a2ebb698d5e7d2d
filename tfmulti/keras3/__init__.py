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

import logging
from typing import Any

import keras
import tensorflow as tf

from tfmulti.keras3 import seeds
from tfmulti.keras3 import step as step_lib
from tfmulti.keras3.fixes import FIXES
from tfmulti.keras3.patching import Applied, applied

VERIFIED = ("3.15",)


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
    _prepare(strategy.extended, record.strategies)
    record.strategies += 1
    record.replicas = max(record.replicas, strategy.num_replicas_in_sync)
    seeds.agree_on_seeds(strategy)
    return record


def undo() -> None:
    """Takes every fix back."""
    applied().undo()


def _prepare(extended: Any, number: int) -> None:
    """Prepares a strategy's own object for what the fixes do with it.

    Args:
        extended: The strategy's `extended`.
        number: How many strategies were prepared in this process before.
    """
    if "_use_merge_call" in vars(extended):
        return
    if hasattr(extended, "_collective_ops"):  # Mirrored, in one process.
        _own_collective_keys(extended, number)
    _allow_local_updates(extended)


def _own_collective_keys(extended: Any, number: int) -> None:
    """Gives a strategy collectives that no other in this process has.

    Two strategies over the same devices number theirs alike, and end in
    "Shape mismatch in the collective instance". TensorFlow's own tests move
    the base of the numbers for the same reason (`strategy_combinations.py`).
    """
    old = extended._collective_ops
    extended._collective_key_base = 100_000 * number
    extended._collective_ops = extended._make_collective_ops_with_fallbacks()
    if extended._cross_device_ops is old:
        extended._cross_device_ops = extended._collective_ops


def _allow_local_updates(extended: Any) -> None:
    """Lets `step.local_updates` switch this strategy's merging off."""
    merges = type(extended)._use_merge_call
    reduction_of = type(extended)._get_cross_device_ops

    def use_merge_call() -> bool:
        return not step_lib.local_updates_only() and merges(extended)

    def get_cross_device_ops(value: Any) -> Any:
        # TensorFlow's method would log on every trace that it does this.
        if step_lib.local_updates_only() and hasattr(
            extended, "_collective_ops"
        ):
            return extended._collective_ops
        return reduction_of(extended, value)

    extended._use_merge_call = use_merge_call
    extended._get_cross_device_ops = get_cross_device_ops
