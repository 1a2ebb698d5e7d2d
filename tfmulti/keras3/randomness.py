"""Independent random numbers on every replica, reproducible for a seed.

Keras draws from `SeedGenerator`s whose state is a variable, equal on all
replicas, so that dropout, augmentation and GAN noise are the same numbers on
each of them. Here the seed that `next` returns is shifted by the replica's
number among all replicas of the job:

    replica 0    the stream of one device
    replica r    the same stream with r * ODD added to its first word

The saved state stays equal everywhere, and a replica's numbers do not depend
on how replicas are spread over hosts.

Unseeded draws use a generator that Keras keeps per thread, and replicas run
in threads of their own. `shared_state` hands them the main thread's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from keras.src.backend.common import global_state
from keras.src.random import seed_generator
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from tfmulti.keras3 import step as step_lib

# 2**32 / golden ratio, odd: multiples of it are far apart modulo 2**32.
_ODD = 0x9E3779B1


def independent_next(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `SeedGenerator.next`."""

    def next(self: Any, ordered: bool = True) -> Any:  # noqa: A001
        context = step_lib.replica_context()
        if context is None:
            if _in_dataset_function(self):
                return _draw_on_host(self, ordered)
            return original(self, ordered)
        seed = original(self, ordered)
        replica = tf.cast(context.replica_id_in_sync_group, seed.dtype)
        odd = tf.constant(np.array(_ODD).astype(np.int64), tf.int64)
        shift = replica * tf.cast(odd, seed.dtype)
        return seed + tf.stack([shift, tf.zeros_like(shift)])

    return next


def global_generator_in(strategy: tf.distribute.Strategy) -> None:
    """Makes Keras's unseeded generator one whose state all replicas hold.

    One that exists already, outside the strategy's scope or in that of
    another strategy, is made again inside it, with the state that it has.
    """
    name = seed_generator.GLOBAL_SEED_GENERATOR
    existing = global_state.get_global_attribute(name)
    if existing is not None and _belongs_to(existing.state.value, strategy):
        return
    state = None if existing is None else existing.state.numpy()
    with strategy.scope():
        global_state.set_global_attribute(name, None)
        generator = seed_generator.global_seed_generator()
        if state is not None:
            generator.state.assign(state)


def capture_state() -> dict[str, Any]:
    """Copies the calling thread's Keras state (see `shared_state`)."""
    return {
        name: list(value) if isinstance(value, list) else value
        for name, value in global_state.GLOBAL_STATE_TRACKER.__dict__.items()
    }


@contextlib.contextmanager
def shared_state(state: dict[str, Any]) -> Iterator[None]:
    """Gives this thread the Keras state that `capture_state` read.

    Keras keeps dtype policies, name scopes and the unseeded generator per
    thread, so a replica's thread would start with none of them.
    """
    tracker = global_state.GLOBAL_STATE_TRACKER
    before = dict(tracker.__dict__)
    tracker.__dict__.update(state)
    try:
        yield
    finally:
        tracker.__dict__.clear()
        tracker.__dict__.update(before)


def _belongs_to(variable: Any, strategy: tf.distribute.Strategy) -> bool:
    return _is_distributed(variable) and (
        variable.distribute_strategy is strategy
    )


def _is_distributed(variable: Any) -> bool:
    return isinstance(variable, tf.distribute.DistributedValues)


def _in_dataset_function(generator: Any) -> bool:
    """Whether a tf.data function is being traced around this call."""
    if tf.executing_eagerly() or not _is_distributed(generator.state.value):
        return False
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:
        if "Dataset" in getattr(graph, "name", ""):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


def _draw_on_host(generator: Any, ordered: bool) -> tf.Tensor:
    """Draws inside `Dataset.map`, from a copy of the state on the host.

    A function of tf.data cannot capture a variable that lives on several
    devices (UnliftableError); the copy is a plain variable that continues
    the same stream, advanced as `SeedGenerator.next` advances it.
    """
    host = generator.__dict__.get("_tfmulti_host")
    if host is None:
        with tf.init_scope(), tf.device("CPU:0"):
            # The class itself: `tf.Variable` would make a distributed one.
            host = ResourceVariable(
                generator.state.value.read_value(), trainable=False
            )
        object.__setattr__(generator, "_tfmulti_host", host)
    seed = host.read_value()
    if ordered:
        host.assign(seed + tf.constant([0, 1], seed.dtype))
    else:
        host.assign((seed + 1) * 5387 % 933199)
    return seed
