"""Variables that are born late, and copies that are written alone.

A variable that Keras creates while a `tf.function` is traced (an optimizer
built at its first update, a layer at its first call) is initialised inside
the function, under a `cond`; a collective in the same function then loses its
key ("You must feed a value for placeholder"). Lifting the creation out of the
function, as if it had come before, avoids the `cond`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfmulti.keras3 import step as step_lib


def lifted_initialization(
    original: Callable[..., None],
) -> Callable[..., None]:
    """Wraps `Variable._initialize_with_initializer`."""

    def initialize(self: Any, initializer: Any) -> None:
        if tf.executing_eagerly() or step_lib.replica_context() is None:
            return original(self, initializer)
        with tf.init_scope():
            return original(self, initializer)

    return initialize


def local_assign(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `Variable._direct_assign`: writes this replica's copy alone.

    Without it the counter of steps, whose aggregation is "only first
    replica", would merge all replicas in the middle of a `cond`.
    """

    def direct_assign(self: Any, value: Any) -> None:
        copy = getattr(self._value, "_get_on_device_or_primary", None)
        if (
            copy is None
            or not step_lib.local_updates_only()
            or step_lib.replica_context() is None
        ):
            return original(self, value)
        copy().assign(tf.cast(value, self._value.dtype))

    return direct_assign


def python_number(
    original: Callable[..., Any], kind: type
) -> Callable[..., Any]:
    """Wraps `__int__` or `__float__` of Keras's variables.

    `float(optimizer.learning_rate)` fails for a variable with copies, since
    TensorFlow's distributed variables are no Python numbers.
    """

    def number(self: Any) -> Any:
        if isinstance(self.value, tf.distribute.DistributedValues):
            if self.shape.rank == 0 and tf.executing_eagerly():
                return kind(self.value.numpy())
        return original(self)

    return number


def number_of_copies(
    original: None, kind: type
) -> Callable[[Any], int | float]:
    """Gives `__int__` or `__float__` of TensorFlow's distributed variables.

    A plain variable has them, so that `int(variable.value)` works there.
    """
    del original

    def number(self: Any) -> int | float:
        return kind(self.numpy())

    return number
