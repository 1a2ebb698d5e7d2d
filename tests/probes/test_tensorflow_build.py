"""The probe reads what TensorFlow declares and what libraries answer."""

from __future__ import annotations

import ctypes
from importlib import metadata

import pytest

from tfmulti.probes import tensorflow_build

REQUIRED = [
    "absl-py>=1.0.0",
    'nvidia-cuda-nvcc-cu12<13.0,>=12.5.82; extra == "and-cuda"',
    'nvidia-cuda-runtime-cu12<13.0,>=12.5.82; extra == "and-cuda"',
    'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
    'nvidia-nccl-cu12<3.0,>=2.27.7; extra == "and-cuda"',
]


def test_what_tensorflow_declares(monkeypatch):
    monkeypatch.setattr(metadata, "requires", lambda package: REQUIRED)
    assert list(tensorflow_build._needed()) == [
        ("cudart", "12.5.82", "12"),
        ("cudnn", "9.3.0.75", "9"),
        ("nccl", "2.27.7", "2"),
    ]


@pytest.mark.parametrize(
    ("name", "number", "version"),
    [
        ("cudart", 12050, "12.5"),
        ("cudnn", 90300, "9.3.0"),
        ("cudnn", 91002, "9.10.2"),
        ("nccl", 22707, "2.27.7"),
    ],
)
def test_versions_are_decoded(name, number, version):
    """cuDNN returns its version, the others write it where they are told."""
    if name == "cudnn":
        function = ctypes.CFUNCTYPE(ctypes.c_size_t)(lambda: number)
    else:

        def write(place):
            place[0] = number
            return 0

        function = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(ctypes.c_int)
        )(write)
    assert tensorflow_build._version(name, function) == version


def test_a_library_that_is_not_there():
    assert tensorflow_build._found("nccl", "987") is None
