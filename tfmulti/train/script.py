"""Runs a person's own script as `python train.py` would, under a strategy.

The script knows nothing of tfmulti. It finds what Python itself would give it:

    sys.argv        the script and its own flags
    sys.path[0]     the script's folder (with -m: the working directory)
    __main__        its own module, which stays until the process ends, so that
                    atexit functions, threads and pickle find it
    exit code       SystemExit's, 1 for an exception, 130 for Ctrl-C
    traceback       from the script's first frame on, ours are left out

An exception that is a known misuse of tf.distribute is told in one message
with its remedy, instead of a trace through TensorFlow.
"""

from __future__ import annotations

import io
import os
import runpy
import signal
import sys
import types
from collections.abc import Callable, Sequence

from tfmulti.errors import SIGNALLED

INTERRUPTED = SIGNALLED + signal.SIGINT
OUR_FILES = (__file__, runpy.__file__, "<frozen runpy>")


def run_script(
    *,
    path: str | None = None,
    module: str | None = None,
    argv: Sequence[str] = (),
    translate: Callable[[BaseException], str | None] = lambda error: None,
) -> int:
    """Runs a script to its end.

    Args:
        path: File of the script; or
        module: dotted name of a module, as `python -m` takes it.
        argv: The script's own flags.
        translate: Gives the text for an exception that is a known misuse,
            None for every other.

    Returns:
        The exit code that `python` would have given.
    """
    try:
        if path is not None:
            _run_path(path, argv)
        else:
            assert module is not None
            _run_module(module, argv)
    except SystemExit as leave:
        return _exit_code(leave)
    except KeyboardInterrupt as error:
        # Who interrupts knows where: only a hook of the script's is called.
        if sys.excepthook is not sys.__excepthook__:
            _show(error)
        return INTERRUPTED
    except BaseException as error:
        message = translate(error)
        if message is None:
            _show(error)
        else:
            print(f"tfmulti: {message}", file=sys.stderr)
        return 1
    return 0


def _run_path(path: str, argv: Sequence[str]) -> None:
    full_path = os.path.abspath(path)
    main = types.ModuleType("__main__")
    main.__file__ = full_path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.argv[:] = [path, *argv]
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    with io.open_code(full_path) as file:
        source = file.read()
    # dont_inherit: this file's `annotations` must not become the script's.
    code = compile(source, full_path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _run_module(module: str, argv: Sequence[str]) -> None:
    sys.path[0] = os.getcwd()
    sys.argv[:] = [module, *argv]  # runpy puts the file's path first
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _exit_code(leave: SystemExit) -> int:
    if leave.code is None:
        return 0
    if isinstance(leave.code, int):
        return leave.code
    print(leave.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Shows an exception as Python does, without the frames above it."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename in OUR_FILES:
        trace = trace.tb_next
    # The script may have put its own hook there, as wandb and rich do.
    sys.excepthook(type(error), error.with_traceback(trace), trace)
