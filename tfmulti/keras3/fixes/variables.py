"""Fault: variables that are created or updated inside a step.

An optimizer or layer that is built in its first step puts the step under a
`cond`, where collectives lose their keys; the counter of steps merges all
replicas wherever it is updated; `float(optimizer.learning_rate)` and
`int(variable.value)` fail; integers that are summed over replicas lose their
remainder when they are assigned outside of them.
"""

from __future__ import annotations

import functools

from tfmulti.keras3 import variables
from tfmulti.keras3.patching import Fix, Patch

_VARIABLE = "keras.src.backend.tensorflow.core:Variable"
_COPIES = "tensorflow.python.distribute.values:DistributedVariable"

FIX = Fix(
    name="variables",
    fault="an optimizer or layer built in its first step crashes",
    upstream="https://github.com/keras-team/keras/issues/20164",
    versions="keras 3.15, tensorflow 2.21",
    patches=(
        Patch(
            target=_VARIABLE,
            attribute="_initialize_with_initializer",
            wrap=variables.lifted_initialization,
            digest="d397650438ee",
        ),
        Patch(
            target=_VARIABLE,
            attribute="_direct_assign",
            wrap=variables.local_assign,
            digest="cb249322a3f6",
        ),
        Patch(
            target="keras.src.backend.common.variables:Variable",
            attribute="__int__",
            wrap=functools.partial(variables.python_number, kind=int),
            digest="53ea13f459d2",
        ),
        Patch(
            target="keras.src.backend.common.variables:Variable",
            attribute="__float__",
            wrap=functools.partial(variables.python_number, kind=float),
            digest="e6940b2d865d",
        ),
        Patch(
            target=_COPIES,
            attribute="__int__",
            wrap=functools.partial(variables.number_of_copies, kind=int),
            digest="unreadable",
        ),
        Patch(
            target=_COPIES,
            attribute="__float__",
            wrap=functools.partial(variables.number_of_copies, kind=float),
            digest="unreadable",
        ),
        Patch(
            target=_COPIES,
            attribute="__array__",
            wrap=variables.array_of_copies,
            digest="unreadable",
        ),
        Patch(
            target="tensorflow.python.distribute.values_util",
            attribute="on_read_assign_cross_replica",
            wrap=variables.whole_numbers,
            digest="1c9a92030787",
        ),
    ),
)
