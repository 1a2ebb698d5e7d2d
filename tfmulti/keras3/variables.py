"""Variables that are born late, and copies that act as one variable.

A variable that Keras creates while a `tf.function` is traced (an optimizer
built at its first update, a layer at its first call) is initialised inside
the function, under a `cond`; a collective in the same function then loses its
key ("You must feed a value for placeholder"). Lifting the creation out of the
function, as if it had come before, avoids the `cond`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfmulti.keras3 import agreement
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


def array_of_copies(original: None) -> Callable[..., Any]:
    """Gives `__array__` of TensorFlow's distributed variables.

    numpy otherwise asks one copy, which answers with a bare number where it
    has no dimension ("object __array__ method not producing an array").
    """
    del original

    def array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        del copy  # What `numpy()` gives is a copy.
        return np.asarray(self.numpy(), dtype)

    return array


def whole_numbers(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `values_util.on_read_assign_cross_replica`.

    A variable that is read as the sum of its copies is assigned value /
    replicas on each, where an integer loses its remainder (the confusion
    matrix of an IoU metric, updated outside of all replicas, stays 0). The
    first copy of the job gets the remainder.
    """

    def assign(var: Any, value: Any, read_value: bool = True) -> Any:
        summed = var.aggregation == tf.VariableAggregation.SUM
        if not summed or not var.dtype.is_integer:
            return original(var, value, read_value)
        strategy = var.distribute_strategy
        value = tf.convert_to_tensor(value, var.dtype)
        rest = value % strategy.num_replicas_in_sync
        result = original(var, value - rest, read_value)
        if agreement.worker(strategy) == 0:
            first = var.values[0]
            with tf.device(first.device):
                first.assign_add(rest)
        return result

    return assign
