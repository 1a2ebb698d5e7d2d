"""One seed for the job, where the person gave none.

Workers that draw from generators of their own shuffle the same data into
different orders, and then each takes its part of another order: of 64
examples about 15 are never seen in an epoch, and as many twice.

Right after the strategy is built, each generator (Python's, numpy's,
TensorFlow's) that is not in the same state on all workers is seeded from a
draw of the chief; one that is, was seeded by the person and stays. What the
person seeds later wins.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context as tf_context

from tfmulti.keras3 import agreement


def agree_on_seeds(strategy: tf.distribute.Strategy) -> None:
    """Seeds this worker's generators alike on all workers, once a strategy."""
    if not agreement.several(strategy):
        return
    if strategy.__dict__.get("_tfmulti_seeded"):
        return
    mine = _states() | {"draw": secrets.randbits(31)}
    found = agreement.gather(strategy, mine, "the common seed")
    draw = found[0]["draw"]
    if _differ(found, "python"):
        random.seed(draw)
    if _differ(found, "numpy"):
        np.random.seed(draw)
    if found[0]["tensorflow"] is None or _differ(found, "tensorflow"):
        tf.random.set_seed(draw)
    object.__setattr__(strategy, "_tfmulti_seeded", True)


def tensorflow_seed() -> int | None:
    """Gives the seed that `tf.random.set_seed` set, or None."""
    return tf_context.global_seed()


@contextlib.contextmanager
def tensorflow_seeded(seed: int) -> Iterator[None]:
    """Builds graphs under a seed, and leaves TensorFlow's own as it was."""
    context = tf_context.context()
    before = context._seed, context._rng
    tf.random.set_seed(seed)
    try:
        yield
    finally:
        context._seed, context._rng = before


def python_state() -> int:
    """Gives a digest of the state of Python's generator."""
    return zlib.crc32(repr(random.getstate()).encode())


def _states() -> dict[str, Any]:
    state = np.random.get_state(legacy=False)
    return {
        "python": python_state(),
        "numpy": zlib.crc32(repr(_plain(state)).encode()),
        "tensorflow": tensorflow_seed(),
    }


def _plain(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: _plain(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def _differ(found: list[dict[str, Any]], name: str) -> bool:
    return any(each[name] != found[0][name] for each in found)
