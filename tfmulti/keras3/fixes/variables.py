"""Fault: variables that are created or updated inside a step.

An optimizer or layer that is built in its first step puts the step under a
`cond`, where collectives lose their keys; the counter of steps merges all
replicas wherever it is updated; `float(optimizer.learning_rate)` fails.
"""

from __future__ import annotations

import functools

from tfmulti.keras3 import variables
from tfmulti.keras3.patching import Fix, Patch

_VARIABLE = "keras.src.backend.tensorflow.core:Variable"

FIX = Fix(
    name="variables",
    fault="an optimizer or layer built in its first step crashes",
    upstream="https://github.com/keras-team/keras/issues/20164",
    versions="keras 3.15",
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
    ),
)
