"""A normal run shows what the run says, and nothing of what TensorFlow mumbles.

Three sources of noise, each with its own tap:

    C++ at import    written straight to file descriptor 2, before any log
                     level is read (TensorFlow 2.21 prints four such lines
                     whatever TF_CPP_MIN_LOG_LEVEL says) -> `quiet_import`
    C++ later        obeys TF_CPP_MIN_LOG_LEVEL, which the launcher sets, and
                     `tfmulti.init` where nobody has -> `quiet_cpp`
    Python           the "tensorflow" and "absl" loggers -> `quiet_loggers`

Only lines of level I (information) are dropped, and that there is no driver;
warnings and other errors pass. With TF_CPP_MIN_LOG_LEVEL=0 set by the person
everything passes.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager

# "I0000 00:00:1796071264.438789    6903 port.cc:153] oneDNN custom ..."
# Error 303 is that of CUDA's stand-in where there is no driver at all.
_NOISE = re.compile(
    r"I\d{4} |WARNING: All log messages before absl::Init"
    r"|To enable the following instructions: "
    r"|E\d{4} .*failed call to cuInit: .*\(303\)"
)
LEVEL_VARIABLE = "TF_CPP_MIN_LOG_LEVEL"


def wants_noise(env: Mapping[str, str]) -> bool:
    """Tells whether the person asked to see TensorFlow's own messages."""
    return env.get(LEVEL_VARIABLE) == "0"


def without_noise(text: str) -> str:
    """Gives the text without the lines of information that C++ logged."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not _NOISE.match(line))


@contextmanager
def quiet_import(env: Mapping[str, str]) -> Iterator[None]:
    """Keeps back C++ noise on file descriptor 2 while the block runs.

    What is no noise is shown when the block ends, also by an exception.
    """
    if wants_noise(env):
        yield
        return
    sys.stderr.flush()
    real = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            os.close(real)
            kept.seek(0)
            text = kept.read().decode(errors="replace")
            sys.stderr.write(without_noise(text))


def quiet_cpp(env: MutableMapping[str, str]) -> None:
    """Lets only errors of TensorFlow's C++ side pass, if nobody has chosen.

    Args:
        env: This process's environment, before TensorFlow is imported.
    """
    env.setdefault(LEVEL_VARIABLE, "2")


def quiet_loggers(env: Mapping[str, str]) -> None:
    """Lets only errors of TensorFlow's and absl's Python loggers pass."""
    if not wants_noise(env):
        for name in ("tensorflow", "absl"):
            logging.getLogger(name).setLevel(logging.ERROR)
