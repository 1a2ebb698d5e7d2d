"""What workers must have alike while they train, compared and put right.

Four things may be changed on one worker alone, and each would make the job
stand still or train two models: the wish to stop, the epoch to begin with,
an optimizer's numbers (the learning rate), and weights. At points that all
workers pass, each sends

    [stop, first epoch, number of variables, checksum of their bits]

in one collective. A stop on any worker is a stop on all. Where checksums
differ the chief's values go to everybody, and one warning says which worker
had what.
"""

from __future__ import annotations

import inspect
import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfmulti.errors import UsageError
from tfmulti.keras3 import agreement, reduction, saving, trainer
from tfmulti.keras3 import state as state_lib
from tfmulti.keras3 import step as step_lib

NAMED = 3  # Variables that a warning names before it counts the rest.


def agree(
    model: keras.Model,
    when: str,
    *,
    numbers_only: bool = False,
    warn: bool = True,
) -> None:
    """Makes stop, first epoch and variables alike on all workers.

    Args:
        model: A built model; all workers call at the same point.
        when: The point, for messages: "the end of an epoch".
        numbers_only: Compare the optimizers' scalars alone, which is cheap
            enough for every batch.
        warn: Say what was different.

    Raises:
        UsageError: Workers have other variables, so that none can be sent.
    """
    strategy = model.distribute_strategy
    if not agreement.several(strategy):
        return
    variables = numbers_of(model) if numbers_only else shared(model)
    digests = _digests(model, variables)
    table = agreement.gather_numbers(
        strategy,
        [
            int(bool(model.stop_training)),
            -1 if model._initial_epoch is None else model._initial_epoch,
            saving.published(strategy),
            len(variables),
            zlib.crc32(digests.tobytes()),
        ],
        when,
    )
    model.stop_training = bool(table[:, 0].any())
    first = int(table[0, 1])
    model._initial_epoch = None if first < 0 else first
    saving.skip(strategy, int(table[0, 2]))
    if (table[:, 3] != table[0, 3]).any():
        raise _other_variables(table[:, 3])
    if (table[:, 4] != table[0, 4]).any():
        _take_chiefs(model, variables, digests, when, warn)


def numbers_of(model: keras.Model) -> list[keras.Variable]:
    """Lists the scalars of a model's optimizers (rate, step count, scale)."""
    return _unique(
        v
        for optimizer in state_lib.optimizers_of(model)
        for v in optimizer.variables
        if _is_scalar(v)
    )


def shared(model: keras.Model) -> list[keras.Variable]:
    """Lists the variables that must be equal: all but metrics and strings."""
    metrics = {id(v) for m in model.metrics for v in m.variables}
    optimizers = [
        v for o in state_lib.optimizers_of(model) for v in o.variables
    ]
    return [
        v
        for v in _unique([*model.variables, *optimizers])
        if id(v) not in metrics
        and getattr(v, "synchronization", "auto") != "on_read"
        and v.dtype != "string"
    ]


def _is_scalar(variable: keras.Variable) -> bool:
    return len(variable.shape) == 0


def _unique(variables: Any) -> list[keras.Variable]:
    return list({id(v): v for v in variables}.values())


def _digests(
    model: keras.Model, variables: Sequence[keras.Variable]
) -> np.ndarray:
    """Gives one int64 for each variable, of the bits of this worker's copy."""
    if not variables:
        return np.zeros(0, np.int64)
    strategy = model.distribute_strategy

    def digests() -> tf.Tensor:
        found = strategy.run(
            lambda: tf.stack([bits_digest(v.value) for v in variables])
        )
        return strategy.experimental_local_results(found)[0]

    name = f"digests_{len(variables)}"
    return np.asarray(
        trainer.kept_function(model, name, list(variables), lambda: digests)()
    )


def bits_digest(value: Any) -> tf.Tensor:
    """Gives an int64 of all bits of a tensor, by wrapping integer sums.

    Integer sums do not depend on their order, so that equal tensors have
    equal digests on every device.
    """
    value = tf.reshape(tf.convert_to_tensor(value), [-1])
    if value.dtype.is_floating:
        wide = {2: tf.int16, 4: tf.int32, 8: tf.int64}
        value = tf.bitcast(value, wide.get(value.dtype.size, tf.int8))
    bits = tf.cast(value, tf.int64)
    place = tf.range(tf.size(bits, tf.int64), dtype=tf.int64)
    odd = tf.constant(0x1E3779B97F4A7C15, tf.int64)
    return tf.reduce_sum((bits + 1) * (place * odd + 1))


def _take_chiefs(
    model: keras.Model,
    variables: Sequence[keras.Variable],
    digests: np.ndarray,
    when: str,
    warn: bool,
) -> None:
    strategy = model.distribute_strategy
    table = agreement.gather_numbers(strategy, digests, when)
    differ = (table != table[0]).any(axis=0)
    wrong = [v for v, d in zip(variables, differ, strict=True) if d]
    if warn:
        workers = np.flatnonzero((table != table[0]).any(axis=1)).tolist()
        _warn(strategy, wrong, workers, when)
    send_from_chief(strategy, wrong)


def _warn(
    strategy: Any,
    variables: Sequence[keras.Variable],
    workers: list[int],
    when: str,
) -> None:
    scalars = [v for v in variables if _is_scalar(v)][:NAMED]
    values = agreement.gather(
        strategy, [float(keras.ops.convert_to_numpy(v)) for v in scalars], when
    )
    names = [
        f"{v.path} ("
        + ", ".join(f"worker {w}: {row[i]:g}" for w, row in enumerate(values))
        + ")"
        for i, v in enumerate(scalars)
    ]
    others = [v.path for v in variables if not _is_scalar(v)]
    names += others[: NAMED - len(names)]
    more = len(variables) - len(names)
    logging.getLogger("tfmulti").warning(
        "at %s worker%s %s had other values than worker 0 of %s%s; all "
        "workers go on with those of worker 0. Change them on every worker.",
        when,
        "s" if len(workers) > 1 else "",
        ", ".join(map(str, workers)),
        ", ".join(names),
        f" and {more} more variables" if more else "",
    )


def send_from_chief(
    strategy: Any, variables: Sequence[keras.Variable]
) -> None:
    """Gives every replica of the job the first replica's values, exactly."""

    def replica() -> None:
        context = tf.distribute.get_replica_context()
        first = tf.equal(context.replica_id_in_sync_group, 0)
        mine = [_wire(tf.convert_to_tensor(v.value)) for v in variables]
        mine = [tf.where(first, m, tf.zeros_like(m)) for m in mine]
        sums = _sums_by_type(mine)
        with step_lib.local_updates(parts=False):
            for variable, total in zip(variables, sums, strict=True):
                variable.assign(tf.cast(total, variable.value.dtype))

    tf.function(lambda: strategy.run(replica), autograph=False)()


def _sums_by_type(values: Sequence[tf.Tensor]) -> list[Any]:
    """Sums over replicas; a collective packs tensors of one type alone."""
    sums: dict[int, Any] = {}
    for dtype in sorted({v.dtype for v in values}, key=str):
        places = [i for i, v in enumerate(values) if v.dtype == dtype]
        found = reduction.sum_over_replicas([values[i] for i in places])
        sums |= dict(zip(places, found, strict=True))
    return [sums[i] for i in range(len(values))]


def _wire(value: tf.Tensor) -> tf.Tensor:
    """Widens a value to a type that every collective can sum exactly."""
    if value.dtype in (tf.float32, tf.float64):
        return value
    return tf.cast(
        value, tf.float32 if value.dtype.is_floating else tf.int64
    )


def _other_variables(counts: np.ndarray) -> UsageError:
    return UsageError(
        received=", ".join(
            f"{int(c)} variables on worker {w}" for w, c in enumerate(counts)
        ),
        allowed="the same model and optimizer on every worker",
        remedy="Build the same model, compiled alike, on every worker.",
    )


def compared_arguments(
    original: Callable[..., Any],
) -> Callable[..., Any]:
    """Wraps `fit`: what decides how many steps are run must be alike."""
    signature = inspect.signature(original)

    def fit(self: keras.Model, *args: Any, **kwargs: Any) -> Any:
        strategy = self._distribute_strategy
        if trainer.handles(strategy) and agreement.several(strategy):
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            _require_equal_arguments(self, bound.arguments)
        return original(self, *args, **kwargs)

    return fit


_COMPARED = (
    "batch_size",
    "epochs",
    "initial_epoch",
    "steps_per_epoch",
    "validation_split",
    "validation_steps",
    "validation_batch_size",
    "validation_freq",
    "shuffle",
    "class_weight",
)


def _require_equal_arguments(
    model: keras.Model, arguments: dict[str, Any]
) -> None:
    mine = {name: repr(arguments.get(name)) for name in _COMPARED}
    given = arguments.get("validation_data") is not None
    mine["validation_data"] = "given" if given else "None"
    mine["steps_per_execution"] = repr(model.steps_per_execution)
    found = agreement.gather(model.distribute_strategy, mine, "fit")
    for name in mine:
        values = [each[name] for each in found]
        if len(set(values)) > 1:
            raise UsageError(
                received=f"fit with {name} = "
                + ", ".join(f"{v} on worker {w}" for w, v in enumerate(values)),
                allowed="the same value on every worker, or they would not "
                "run the same steps",
                remedy=f"Call fit with the same {name} on every worker.",
            )
