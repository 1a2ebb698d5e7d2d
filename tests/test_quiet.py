"""Noise is kept back; everything else is shown."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tfmulti.quiet import without_noise

NOISE = (
    "WARNING: All log messages before absl::InitializeLog() is called are "
    "written to STDERR\n"
    "I0000 00:00:1796071264.438789    6903 port.cc:153] oneDNN is on.\n"
    "To enable the following instructions: AVX2 FMA, in other operations\n"
    "E0000 00:00:1796071264.4387    6903 cuda_platform.cc:52] failed call to "
    "cuInit: INTERNAL: CUDA error: UNKNOWN ERROR (303)\n"
)
NEWS = (
    "W0000 00:00:1796071264.438789    6903 x.cc:1] careful\n"
    "E0000 00:00:1796071264.438789    6903 x.cc:1] broken\n"
    "Traceback (most recent call last):\n"
)

PROGRAM = """
import os, sys
from tfmulti.quiet import quiet_import, quiet_loggers
quiet_loggers(os.environ)
with quiet_import(os.environ):
    import tensorflow
    os.write(2, b"I0000 noise\\nE0000 news\\n")
    if "fail" in sys.argv:
        raise SystemExit("no luck")
tensorflow.get_logger().warning("a warning")
print("after", file=sys.stderr)
"""


def test_information_goes_and_the_rest_stays():
    assert without_noise(NOISE + NEWS) == NEWS


@pytest.mark.parametrize(
    "args, expected",
    [([], "E0000 news\nafter\n"), (["fail"], "E0000 news\nno luck\n")],
)
def test_importing_tensorflow_is_silent(args, expected):
    env = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *args],
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
    )
    assert run.stderr == expected


def test_noise_passes_when_asked_for():
    env = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "0"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
    )
    assert "I0000 noise" in run.stderr and "a warning" in run.stderr
