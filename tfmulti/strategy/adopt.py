"""Scripts that make a strategy of their own get the job's.

Most code for several GPUs begins with `tf.distribute.MirroredStrategy()`. A
second strategy beside the job's would end in "Mixing different strategies",
so while a script runs, constructing one gives the job's:

    the script makes          the job is     it gets
    MirroredStrategy          mirrored       the job's strategy
    MirroredStrategy          multiworker    the cluster's, and one line
    MultiWorkerMirrored...    multiworker    the cluster's
    MultiWorkerMirrored...    mirrored       the job's, and one line
    either                    one            the default strategy, one line
    any other kind            one            what it asked for
    any other kind            several        a UsageError

What the script asks for besides: other devices or another cluster than the
job's are replaced, with one line. Its own reduction (`cross_device_ops`,
`communication_options`) is used unless flags chose one or this host lacks
the GPUs for it; then one line says that it is not.

Construction is replaced on the classes themselves, so every import path of
them is covered; `adopted` undoes it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import (
    central_storage_strategy,
    collective_all_reduce_strategy,
    mirrored_strategy,
    one_device_strategy,
    parameter_server_strategy_v2,
    tpu_strategy,
)
from tensorflow.python.framework import ops

from tfmulti.console import say
from tfmulti.errors import UsageError
from tfmulti.strategy.late_settings import late_settings_left_out
from tfmulti.strategy.patching import replaced
from tfmulti.strategy.process import Installed, Say
from tfmulti.strategy.wishes import honour

_ADOPTED: tuple[type, ...] = (
    mirrored_strategy.MirroredStrategy,
    collective_all_reduce_strategy.CollectiveAllReduceStrategy,
    collective_all_reduce_strategy._CollectiveAllReduceStrategyExperimental,
)
_REFUSED: tuple[type, ...] = (
    one_device_strategy.OneDeviceStrategy,
    central_storage_strategy.CentralStorageStrategy,
    parameter_server_strategy_v2.ParameterServerStrategyV2,
    tpu_strategy.TPUStrategyV2,
    tpu_strategy.TPUStrategy,
)


@contextlib.contextmanager
def adopted(job: Installed, say: Say = say) -> Iterator[None]:
    """Puts the job's strategy around a script, for the code inside.

    Models made inside are the strategy's without a scope of their own, and
    strategies made inside are the job's (see the module). A
    `keras.backend.clear_session()` keeps the strategy.

    Args:
        job: What `install` gave.
        say: Takes each line for the person.
    """
    several = job.choice.kind != "one"
    with contextlib.ExitStack() as stack:
        stack.enter_context(late_settings_left_out(say))
        for owner in _ADOPTED:
            _adopt(stack, owner, job, say)
        for owner in {*_ADOPTED, type(job.strategy)}:
            stack.enter_context(
                replaced(owner, "__init__", _init_but(job.strategy, owner))
            )
        if several:
            for owner in _REFUSED:
                stack.enter_context(
                    replaced(owner, "__new__", _refusal(owner, job))
                )
            stack.enter_context(_everywhere(job.strategy))
        yield


def _adopt(
    stack: contextlib.ExitStack, owner: type, job: Installed, say: Say
) -> None:
    original = owner.__init__  # type: ignore[misc]

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if cls is type(job.strategy) and cls not in _ADOPTED:
            return object.__new__(cls)
        if cls not in _ADOPTED:
            raise _subclass_error(cls, owner)
        honour(job, cls, original, args, kwargs, say)
        return job.strategy

    stack.enter_context(replaced(owner, "__new__", new))


def _init_but(
    ready: tf.distribute.Strategy, owner: type
) -> Callable[..., None]:
    """Gives an `__init__` that leaves `ready` as it is.

    Python calls it on what `__new__` gives: the job's strategy, built long
    since.
    """
    original = owner.__init__  # type: ignore[misc]

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if self is not ready:
            original(self, *args, **kwargs)

    return init


def _refusal(owner: type, job: Installed) -> Callable[..., Any]:
    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(
            received=f"{owner.__name__} in the script of a job that is "
            f"{job.choice}",
            allowed="tf.distribute.MirroredStrategy, "
            "tf.distribute.MultiWorkerMirroredStrategy, tfmulti.init(), or "
            "no strategy at all",
            remedy="Remove it, or start the script with --strategy one.",
        )

    return new


def _subclass_error(cls: type, owner: type) -> UsageError:
    return UsageError(
        received=f"{cls.__name__}, the script's own subclass of "
        f"{owner.__name__}",
        allowed="tf.distribute's own classes, which give the job's strategy",
        remedy="Use one of these, or start the script with plain python.",
    )


@contextlib.contextmanager
def _everywhere(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Makes `strategy` current, and current again in a new default graph.

    `clear_session` resets the default graph, which is where TensorFlow keeps
    the current strategy (Keras 3.15; `keras/src/backend/common/
    global_state.py`), so the rest of a script would train on one device.
    """
    stack = type(ops._default_graph_stack)
    reset = stack.reset

    def reset_and_set(self: Any) -> None:
        current = tf.distribute.get_strategy() is strategy
        reset(self)
        if current:
            tf.distribute.experimental_set_strategy(strategy)

    tf.distribute.experimental_set_strategy(strategy)
    try:
        with replaced(stack, "reset", reset_and_set):
            yield
    finally:
        if tf.distribute.get_strategy() is strategy:
            tf.distribute.experimental_set_strategy(None)
