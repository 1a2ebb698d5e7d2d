"""Fault: callbacks act on every worker for itself.

All workers write the same files (`BackupAndRestore` then kills the run,
`CSVLogger` writes each row twice), and a stop or a learning rate of one
worker makes the job stand still or train two models. Batch logs cost a
collective even where nobody reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfmulti.keras3 import callbacks
from tfmulti.keras3.patching import Fix, Patch

_LIST = "keras.src.callbacks.callback_list:CallbackList"
_CHECKPOINT = "keras.src.callbacks.model_checkpoint:ModelCheckpoint"
_BACKUP = "keras.src.callbacks.backup_and_restore:BackupAndRestore"


def _list(
    attribute: str, wrap: Callable[[Any], Any], digest: str
) -> Patch:
    return Patch(target=_LIST, attribute=attribute, wrap=wrap, digest=digest)


FIX = Fix(
    name="callbacks",
    fault="callbacks write and decide on every worker for itself",
    upstream="https://github.com/tensorflow/tensorflow/issues/38635",
    versions="keras 3.15",
    patches=(
        _list("on_train_begin", callbacks.on_train_begin, "635c42a933e1"),
        _list(
            "on_train_batch_end", callbacks.on_train_batch_end, "de0cad7ac87b"
        ),
        _list("on_epoch_begin", callbacks.on_epoch_begin, "30aceca61c8b"),
        _list("on_epoch_end", callbacks.on_epoch_end, "f2e922ef0e24"),
        _list("on_train_end", callbacks.on_train_end, "273ff2b7b717"),
        _list("on_test_begin", callbacks.on_test_begin, "52365bf3dde1"),
        _list("on_test_end", callbacks.on_test_end, "e28d414f35bd"),
        _list("on_predict_begin", callbacks.on_predict_begin, "b326e8a2c0e4"),
        Patch(
            target=_CHECKPOINT,
            attribute="_save_model",
            wrap=callbacks.save_where_agreed,
            digest="59d88213171a",
        ),
        Patch(
            target=_BACKUP,
            attribute="_save_model",
            wrap=callbacks.save_where_agreed,
            digest="94e4d072c55a",
        ),
        Patch(
            target="keras.src.callbacks.tensorboard:TensorBoard",
            attribute="set_model",
            wrap=callbacks.board_on_its_owner,
            digest="6b53ba06df07",
        ),
    ),
)
