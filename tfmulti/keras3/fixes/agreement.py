"""Fault: workers that call `fit` differently stand still.

Another number of epochs or steps on one worker leaves the others waiting in
a collective, without a word.
"""

from __future__ import annotations

from tfmulti.keras3 import alike
from tfmulti.keras3.patching import Fix, Patch

FIX = Fix(
    name="agreement",
    fault="fit with other arguments on one worker hangs",
    upstream="https://github.com/tensorflow/tensorflow/issues/35878",
    versions="keras 3.15",
    patches=(
        Patch(
            target="keras.src.backend.tensorflow.trainer:TensorFlowTrainer",
            attribute="fit",
            wrap=alike.compared_arguments,
            digest="02d3f5fc93e0",
        ),
    ),
)
