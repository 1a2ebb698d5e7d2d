"""Scripts that set up devices, which the job has set up already.

Many scripts begin with `set_memory_growth`, `set_visible_devices`, logical
devices or thread counts. TensorFlow takes these only before it starts, and
in a job it has started: each would end the script with a RuntimeError. While
a script runs, a setting that comes too late is left out, with one line that
says so and where it is set instead. Memory growth needs no line: the job
switches it on.

The methods of TensorFlow's context are replaced, which all of `tf.config`
goes through; leaving the context manager puts them back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.python.eager import context

from tfmulti.strategy.patching import replaced
from tfmulti.strategy.process import Say

_DEVICES = "The job's devices are used; --replicas sets their number."
_THREADS = "Set {} in the environment of the command instead."

_METHODS = {
    "set_visible_devices": _DEVICES,
    "set_logical_device_configuration": _DEVICES,
    "set_memory_growth": "",
}
_PROPERTIES = {
    "intra_op_parallelism_threads": _THREADS.format("TF_NUM_INTRAOP_THREADS"),
    "inter_op_parallelism_threads": _THREADS.format("TF_NUM_INTEROP_THREADS"),
}


@contextlib.contextmanager
def late_settings_left_out(say: Say) -> Iterator[None]:
    """Leaves out settings that come after TensorFlow has started.

    Args:
        say: Takes each line for the person.
    """
    said: set[str] = set()

    def too_late(name: str, instead: str) -> None:
        if instead and name not in said:
            said.add(name)
            say(f"The script's tf.config {name} has no effect. {instead}")

    with contextlib.ExitStack() as stack:
        for name, instead in _METHODS.items():
            old = getattr(context.Context, name)
            method = _tolerant(old, too_late, instead)
            stack.enter_context(replaced(context.Context, name, method))
        for name, instead in _PROPERTIES.items():
            old = vars(context.Context)[name]
            setter = _tolerant(old.fset, too_late, instead)
            new = property(old.fget, setter)
            stack.enter_context(replaced(context.Context, name, new))
        yield


def _tolerant(
    original: Callable[..., Any],
    too_late: Callable[[str, str], None],
    instead: str,
) -> Callable[..., Any]:
    def setting(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except RuntimeError:
            too_late(original.__name__, instead)
            return None

    return setting
