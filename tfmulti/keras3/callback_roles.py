"""What a callback does to a run: reads, decides, saves, writes. Pure.

The engine computes a batch's logs only if somebody reads them, workers agree
at a batch's end only if somebody may decide something there, and of callbacks
that write to the same place one writes. All of it can be told from the
callbacks before the first step.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from keras import callbacks as k

TRAIN_BATCH_HOOKS = (
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_batch_begin",
    "on_batch_end",
)


def reads_train_logs(callback: Any) -> bool:
    """Whether a callback reads logs at the ends of training batches.

    A callback that only looks at the clock may say so with an attribute
    `reads_batch_logs = False`.
    """
    if _overridden(callback, "on_train_batch_end", "on_batch_end"):
        return getattr(callback, "reads_batch_logs", True)
    if isinstance(callback, k.ProgbarLogger):
        return callback.verbose == 1
    if isinstance(callback, k.TensorBoard):
        return callback.update_freq != "epoch"
    if isinstance(callback, k.ModelCheckpoint):
        return callback.save_freq != "epoch"
    return isinstance(callback, k.TerminateOnNaN)


def reads_test_logs(callback: Any) -> bool:
    """Whether a callback reads logs at the ends of evaluated batches."""
    if _overridden(callback, "on_test_batch_end"):
        return getattr(callback, "reads_batch_logs", True)
    if isinstance(callback, k.ProgbarLogger):
        return callback.verbose == 1 and not callback._called_in_fit
    return False


def decides_at_batches(callback: Any) -> bool:
    """Whether a callback may stop, or change numbers, around a batch."""
    if _overridden(callback, *TRAIN_BATCH_HOOKS):
        return getattr(callback, "reads_batch_logs", True)
    return isinstance(callback, k.TerminateOnNaN)


def decides_at_epoch_begin(callback: Any) -> bool:
    """Whether a callback may change numbers when an epoch begins."""
    return _overridden(callback, "on_epoch_begin") or isinstance(
        callback, k.LearningRateScheduler
    )


def batch_saves(callback: Any) -> list[Any] | None:
    """Gives kind, frequency and counters of one that saves inside epochs."""
    kinds = {"checkpoint": k.ModelCheckpoint, "backup": k.BackupAndRestore}
    for kind, cls in kinds.items():
        if isinstance(callback, cls) and isinstance(callback.save_freq, int):
            return [
                kind,
                int(callback.save_freq),
                callback._batches_seen_since_last_saving,
                callback._last_batch_seen,
            ]
    return None


def place_of(callback: Any) -> str | None:
    """Names the place that a callback writes to, or None."""
    attributes = {
        k.ModelCheckpoint: "filepath",
        k.CSVLogger: "filename",
        k.TensorBoard: "log_dir",
        k.BackupAndRestore: "backup_dir",
        k.RemoteMonitor: "root",
        k.OrbaxCheckpoint: "directory",
    }
    for cls, attribute in attributes.items():
        if isinstance(callback, cls):
            place = str(getattr(callback, attribute))
            if "://" not in place:
                place = os.path.abspath(place)
            return f"{cls.__name__} {place}"
    return None


def owners(places: Iterable[Iterable[str]]) -> dict[str, int]:
    """Gives which worker writes to each place: the lowest that wants to."""
    found: dict[str, int] = {}
    for worker, wanted in enumerate(places):
        for place in wanted:
            found.setdefault(place, worker)
    return found


def _overridden(callback: Any, *hooks: str) -> bool:
    """Whether a person's class or object has one of the hooks."""
    return any(
        not _kerass(getattr(callback, hook, None)) for hook in hooks
    )


def _kerass(method: Any) -> bool:
    function = getattr(method, "__func__", method)
    module = getattr(function, "__module__", "") or ""
    return method is None or module.startswith("keras.")
