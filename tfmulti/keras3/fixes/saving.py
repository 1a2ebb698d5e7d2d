"""Fault: saving on every worker writes one file from many processes.

What a layer keeps per replica is saved as replica 0 has it. And saving in a
strategy's scope makes variables, which waits for the other workers.
"""

from __future__ import annotations

from tfmulti.keras3 import saving
from tfmulti.keras3.patching import Fix, Patch

_API = "keras.src.saving.saving_api"
_MODEL_SAVE, _WEIGHTS_SAVE = "40d9c6f3a9b4", "38966258038d"


def _writes(target: str, attribute: str, digest: str) -> Patch:
    return Patch(
        target=target,
        attribute=attribute,
        wrap=saving.by_chief,
        digest=digest,
    )


FIX = Fix(
    name="saving",
    fault="several workers write the same file at once",
    upstream="https://github.com/tensorflow/tensorflow/issues/31070",
    versions="keras 3.15",
    patches=(
        # Each name is bound to the function itself.
        _writes(_API, "save_model", _MODEL_SAVE),
        _writes("keras.saving", "save_model", _MODEL_SAVE),
        _writes("keras.models", "save_model", _MODEL_SAVE),
        _writes(_API, "save_weights", _WEIGHTS_SAVE),
        _writes("keras.saving", "save_weights", _WEIGHTS_SAVE),
        Patch(
            target="keras.src.saving.saving_lib",
            attribute="get_attr_skipset",
            wrap=saving.with_plain_variables,
            digest="015ec1e6d451",
        ),
        _writes("keras.src.models.model:Model", "export", "695d568f62ad"),
    ),
)
