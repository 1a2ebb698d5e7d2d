"""Callbacks of a job: who reads logs, who writes, who decides.

Keras calls all callbacks of a `fit` through one `CallbackList`. The wrappers
here stand around its methods:

    on_train_begin        workers show each other what their callbacks do
                          (`Plan`); of those that write to one place the
                          chief's stays; then weights are compared
    on_train_batch_end    state made equal where a callback saves; a stop and
                          the optimizer's numbers compared where one decides
    on_epoch_begin, _end  the same, and at the end the weights
    on_train_end          all leave together, with the files written

With one worker all that is left is whether batch logs are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import keras

from tfmulti.keras3 import agreement, alike, engine, saving, trainer
from tfmulti.keras3 import callback_roles as roles

_BOARD = keras.callbacks.TensorBoard
_PLAN, _ALL = "_tfmulti_plan", "_tfmulti_all_callbacks"


@dataclass(kw_only=True)
class Plan:
    """What the callbacks of all workers do in one `fit`.

    Attributes:
        reads_train_logs: Batch logs are read in training.
        reads_test_logs: Batch logs are read in evaluation.
        decides_at_batches: A callback may stop or change numbers at batches.
        decides_at_epoch_begin: The same where an epoch begins.
        saves: Counters of the callbacks that save inside epochs.
        owners: Place -> the worker that writes to it.
        restores: A `BackupAndRestore` may load weights.
        agreed_stop: All workers have agreed to stop.
        stop: A stop that was wished for where workers do not agree.
    """

    reads_train_logs: bool
    reads_test_logs: bool
    decides_at_batches: bool
    decides_at_epoch_begin: bool
    saves: list[SaveClock]
    owners: dict[str, int]
    restores: bool
    agreed_stop: bool = False
    stop: bool = False


@dataclass(kw_only=True)
class SaveClock:
    """Tells at which batches a callback of some worker saves.

    It is counted by Keras's own method, on numbers of our own, since a
    worker that lacks the callback must know as well.
    """

    kind: str
    numbers: SimpleNamespace = field(default_factory=SimpleNamespace)

    def due(self, batch: int) -> bool:
        """Counts a batch; must be called once for each execution."""
        rules = {
            "checkpoint": keras.callbacks.ModelCheckpoint,
            "backup": keras.callbacks.BackupAndRestore,
        }
        return rules[self.kind]._should_save_on_batch(self.numbers, batch)

    def epoch_ended(self) -> None:
        """Counts on as Keras does, which starts batches anew."""
        if self.kind == "backup":
            self.numbers._last_batch_seen = 0


def plan_of(found: list[dict[str, Any]]) -> Plan:
    """Makes one plan of what each worker says of its callbacks (`_said`)."""

    def on_any(name: str) -> bool:
        return any(each[name] for each in found)

    clocks = {tuple(save) for each in found for save in each["saves"]}
    owners = roles.owners(each["places"] for each in found)
    return Plan(
        reads_train_logs=on_any("reads_train_logs"),
        reads_test_logs=on_any("reads_test_logs"),
        decides_at_batches=on_any("decides_at_batches"),
        decides_at_epoch_begin=on_any("decides_at_epoch_begin"),
        saves=[_clock(*save) for save in sorted(clocks, key=repr)],
        owners=owners,
        restores=any(p.startswith("BackupAndRestore") for p in owners),
    )


def _clock(kind: str, frequency: int, seen: int, last: int | None) -> SaveClock:
    return SaveClock(
        kind=kind,
        numbers=SimpleNamespace(
            save_freq=frequency,
            _batches_seen_since_last_saving=seen,
            _last_batch_seen=last,
        ),
    )


def _said(callbacks: list[Any]) -> dict[str, Any]:
    saves = [roles.batch_saves(c) for c in callbacks]
    places = [roles.place_of(c) for c in callbacks]
    return {
        "reads_train_logs": any(map(roles.reads_train_logs, callbacks)),
        "reads_test_logs": any(map(roles.reads_test_logs, callbacks)),
        "decides_at_batches": any(map(roles.decides_at_batches, callbacks)),
        "decides_at_epoch_begin": any(
            map(roles.decides_at_epoch_begin, callbacks)
        ),
        "saves": [s for s in saves if s is not None],
        "places": [p for p in places if p is not None],
    }


# Around the methods of `CallbackList`.


def on_train_begin(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `CallbackList.on_train_begin`."""

    def begin(self: Any, logs: Any = None) -> None:
        model = self.model
        if not _governed(model):
            return original(self, logs)
        # A progress bar is silent in the evaluation inside `fit`.
        for callback in self.callbacks:
            if isinstance(callback, keras.callbacks.ProgbarLogger):
                callback._called_in_fit = True
        plan = _plan_together(self, "fit begins")
        setattr(self, _PLAN, plan)
        _set_reads(model.train_function, plan.reads_train_logs)
        trainer.agree(model)
        original(self, logs)
        alike.agree(model, "the start of fit", warn=not plan.restores)
        return None

    return begin


def on_train_batch_end(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `CallbackList.on_train_batch_end`."""

    def end(self: Any, batch: int, logs: Any = None) -> None:
        plan = getattr(self, _PLAN, None)
        if plan is None:
            return original(self, batch, logs)
        due = [clock.due(batch) for clock in plan.saves]
        if any(due):
            trainer.agree(self.model)
        original(self, batch, logs)
        if plan.decides_at_batches:
            alike.agree(self.model, "the end of a batch", numbers_only=True)
        elif not plan.agreed_stop and agreement.several(
            self.model.distribute_strategy
        ):
            # A signal handler, a thread: taken up where all agree.
            plan.stop |= bool(self.model.stop_training)
            self.model.stop_training = False
        return None

    return end


def on_epoch_begin(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `CallbackList.on_epoch_begin`."""

    def begin(self: Any, epoch: int, logs: Any = None) -> None:
        original(self, epoch, logs)
        plan = getattr(self, _PLAN, None)
        if plan is not None and plan.decides_at_epoch_begin:
            alike.agree(self.model, "the start of an epoch", numbers_only=True)
            plan.agreed_stop = bool(self.model.stop_training)

    return begin


def on_epoch_end(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `CallbackList.on_epoch_end`."""

    def end(self: Any, epoch: int, logs: Any = None) -> None:
        original(self, epoch, logs)
        plan = getattr(self, _PLAN, None)
        if plan is None:
            return
        for clock in plan.saves:
            clock.epoch_ended()
        if plan.stop:
            self.model.stop_training = True
        alike.agree(self.model, "the end of an epoch")

    return end


def on_train_end(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `CallbackList.on_train_end`."""

    def end(self: Any, logs: Any = None) -> None:
        original(self, logs)
        if getattr(self, _PLAN, None) is None:
            return
        # All files are written and nobody has left when this returns.
        alike.agree(self.model, "the end of fit")
        setattr(self, _PLAN, None)
        self.callbacks = getattr(self, _ALL)

    return end


def on_test_begin(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `CallbackList.on_test_begin`."""

    def begin(self: Any, logs: Any = None) -> None:
        model = self.model
        if not _governed(model):
            return original(self, logs)
        plan = getattr(self, _PLAN, None)
        if plan is None:
            plan = _plan_together(self, "evaluate begins")
        _set_reads(model.test_function, plan.reads_test_logs)
        return original(self, logs)

    return begin


def on_test_end(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `CallbackList.on_test_end`."""

    def end(self: Any, logs: Any = None) -> None:
        original(self, logs)
        if getattr(self, _PLAN, None) is None:
            self.callbacks = getattr(self, _ALL, self.callbacks)

    return end


def on_predict_begin(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `CallbackList.on_predict_begin`."""

    def begin(self: Any, logs: Any = None) -> None:
        if _governed(self.model):
            _print_on_chief_only(self)
        return original(self, logs)

    return begin


def save_where_agreed(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `_save_model` of `ModelCheckpoint` and `BackupAndRestore`."""

    def save(self: Any, *args: Any, **kwargs: Any) -> Any:
        writes = getattr(self, "_tfmulti_writes", None)
        if writes is None or not _governed(self.model):
            return original(self, *args, **kwargs)
        with saving.agreed(writes=writes):
            return original(self, *args, **kwargs)

    return save


def board_on_its_owner(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps `TensorBoard.set_model`, which writes before anybody begins.

    Workers other than the chief wait until it is known who writes.
    """

    def set_model(self: Any, model: Any) -> None:
        if _governed(model) and agreement.worker(model.distribute_strategy):
            return keras.callbacks.Callback.set_model(self, model)
        return original(self, model)

    return set_model


def _plan_together(callbacks: Any, what: str) -> Plan:
    """Shows the other workers this one's callbacks; leaves out what writes."""
    # Those left out of an earlier run with this list are back.
    callbacks.callbacks = list(getattr(callbacks, _ALL, callbacks.callbacks))
    _print_on_chief_only(callbacks)
    strategy = callbacks.model.distribute_strategy
    said = _said(callbacks.callbacks)
    plan = plan_of(agreement.gather(strategy, said, what))
    _leave_out(callbacks, plan, agreement.worker(strategy))
    return plan


def _governed(model: Any) -> bool:
    return isinstance(model, keras.Model) and trainer.handles(
        model._distribute_strategy
    )


def _set_reads(function: Any, reads: bool) -> None:
    if isinstance(function, engine.StepFunction):
        function.read_logs = reads


def _print_on_chief_only(callbacks: Any) -> None:
    if agreement.worker(callbacks.model.distribute_strategy):
        for callback in callbacks.callbacks:
            if isinstance(callback, keras.callbacks.ProgbarLogger):
                callback.verbose = 0


def _leave_out(callbacks: Any, plan: Plan, worker: int) -> None:
    """Takes out callbacks whose place another worker writes to.

    A `ModelCheckpoint` stays, for it keeps count of the best value; its
    saving does nothing.
    """
    setattr(callbacks, _ALL, callbacks.callbacks)
    kept = []
    for callback in callbacks.callbacks:
        place = roles.place_of(callback)
        writes = place is None or plan.owners[place] == worker
        checkpoint = isinstance(callback, keras.callbacks.ModelCheckpoint)
        if place is not None:
            callback._tfmulti_writes = writes
        if checkpoint and not writes:
            callback.verbose = 0
        if writes or checkpoint:
            kept.append(callback)
        if writes and worker and isinstance(callback, _BOARD):
            _BOARD.set_model.__wrapped__(callback, callbacks.model)
    callbacks.callbacks = kept
