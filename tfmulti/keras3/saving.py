"""Saving on several workers: the chief writes, the others wait for the file.

A script that saves on every worker would write one file from many processes
at once. Yet saving is no meeting point: many scripts save on the chief alone,
and some give each worker a path of its own. So nothing collective happens:

    chief        says "begun PATH", writes, says "done"     (coordination
    the others   read what the chief says                    service)
                   the same path: wait until it is done, write nothing
                   another path, or nothing for a while: write their own, to
                   a temporary name first, so that no reader sees half a file
"""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context as tf_context
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from tfmulti.keras3 import agreement, trainer

PATIENCE_S = 10.0
ELSEWHERE_S = 2.0
_MODE: contextvars.ContextVar[str] = contextvars.ContextVar(
    "tfmulti_saving", default="announced"
)


@contextlib.contextmanager
def agreed(*, writes: bool) -> Iterator[None]:
    """Saves inside as the workers have agreed on before: here or nowhere."""
    token = _MODE.set("here" if writes else "nowhere")
    try:
        yield
    finally:
        _MODE.reset(token)


def by_chief(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function (model, path, ...) that writes a file or folder."""

    def save(model: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        strategy = getattr(model, "_distribute_strategy", None)
        if not trainer.handles(strategy):
            return original(model, filepath, *args, **kwargs)
        if not agreement.several(strategy):
            trainer.agree(model)
            return original(model, filepath, *args, **kwargs)

        def write(path: Any) -> Any:
            with agreed(writes=True):
                return original(model, path, *args, **kwargs)

        return _save(strategy, filepath, write)

    return save


def with_plain_variables(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function whose variables are no part of any model.

    Keras makes an empty optimizer, layer and metric to see which attributes
    it need not save. In a strategy's scope their variables would be created
    on all workers together, while one of them saves.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        with tf.variable_creator_scope(_plain_variable):
            return original(*args, **kwargs)

    return call


def _plain_variable(next_creator: Any, **kwargs: Any) -> tf.Variable:
    del next_creator  # The strategy's.
    names = ("initial_value", "trainable", "name", "dtype", "shape")
    return ResourceVariable(**{n: kwargs.get(n) for n in names})


def published(strategy: Any) -> int:
    """Gives how many saves the chief has announced, known on the chief."""
    return int(strategy.__dict__.get("_tfmulti_saves", 0))


def skip(strategy: Any, count: int) -> None:
    """Lets this worker wait for none of the chief's first `count` saves."""
    if agreement.worker(strategy):
        _set_count(strategy, max(count, published(strategy)))


def _set_count(strategy: Any, count: int) -> None:
    object.__setattr__(strategy, "_tfmulti_saves", count)


def _save(strategy: Any, filepath: Any, write: Callable[[Any], Any]) -> Any:
    mode = _MODE.get()
    if mode == "nowhere":
        return None
    if mode == "here":
        return write(filepath)
    path = os.path.abspath(os.fspath(filepath))
    if agreement.worker(strategy) == 0:
        return _announced(strategy, path, lambda: write(filepath))
    if _chief_writes(strategy, path):
        return None
    return _aside(filepath, write, agreement.worker(strategy))


def _announced(
    strategy: Any, path: str, write: Callable[[], Any]
) -> Any:
    number = published(strategy)
    _set_count(strategy, number + 1)
    context = tf_context.context()
    context.set_config_key_value(_key(number, "begun"), path)
    outcome = "failed"
    try:
        result = write()
        outcome = "done"
        return result
    finally:
        context.set_config_key_value(_key(number, "ended"), outcome)


def _chief_writes(strategy: Any, path: str) -> bool:
    """Waits for the chief's save of a path; False if it saves elsewhere."""
    number, wait_s = published(strategy), PATIENCE_S
    while True:
        begun = _read(_key(number, "begun"), wait_s)
        if begun is None:
            return False
        if begun == path:
            # Without a limit: a large model takes its time.
            _read(_key(number, "ended"), None)
            _set_count(strategy, number + 1)
            return True
        number += 1
        # It saves elsewhere, or saved before on its own: not so patient.
        wait_s = ELSEWHERE_S


def _read(key: str, wait_s: float | None) -> str | None:
    """Reads what the chief said, or None if it says nothing in time."""
    timeout_ms = 0 if wait_s is None else max(1, int(wait_s * 1000))
    try:
        return tf_context.context().get_config_key_value(key, timeout_ms)
    except (tf.errors.DeadlineExceededError, tf.errors.NotFoundError):
        return None


def _key(number: int, event: str) -> str:
    return f"tfmulti/save/{number}/{event}"


def _aside(
    filepath: Any, write: Callable[[Any], Any], worker: int
) -> Any:
    """Writes a file under a temporary name first, folders as they are."""
    path = os.fspath(filepath)
    plain = path.endswith((".keras", ".h5")) and "://" not in path
    if not plain or os.path.isdir(path):
        return write(filepath)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".tmp-worker{worker}-{name}")
    try:
        result = write(temporary)
        os.replace(temporary, path)
        return result
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
