"""Prints what TensorFlow was built with and what it finds, as JSON.

TensorFlow's package declares the least version of each of NVIDIA's libraries
that it works with (its extra `and-cuda`). The libraries are looked for where
TensorFlow does: among NVIDIA's Python packages, then on the linker's path.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfmulti.keras3 import VERIFIED

# Name -> (Python package, folder in it, soname, function for the version).
LIBRARIES = {
    "cudart": (
        "nvidia-cuda-runtime",
        "cuda_runtime",
        "libcudart.so",
        "cudaRuntimeGetVersion",
    ),
    "cudnn": ("nvidia-cudnn", "cudnn", "libcudnn.so", "cudnnGetVersion"),
    "nccl": ("nvidia-nccl", "nccl", "libnccl.so", "ncclGetVersion"),
}


def report() -> dict[str, Any]:
    """Gives versions, build, libraries, and the number of GPUs."""
    series = ".".join(keras.__version__.split(".")[:2])
    return {
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "verified": series in VERIFIED,
        "build": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in tf.sysconfig.get_build_info().items()
        },
        "gpus": len(tf.config.list_physical_devices("GPU")),
        "libraries": {
            name: {"needs": needs, "found": _found(name, major)}
            for name, needs, major in _needed()
        },
    }


def _needed() -> Iterator[tuple[str, str, str]]:
    """Lists (name, least version, major version in the soname)."""
    for requirement in metadata.requires("tensorflow") or ():
        for name, (package, *_) in LIBRARIES.items():
            found = re.match(
                rf"{package}-cu(\d+).*?>=([\d.]+)", requirement
            )
            if found:
                # cuDNN and NCCL count for themselves, CUDA's runtime with
                # CUDA.
                least = found[2]
                major = found[1] if name == "cudart" else least.split(".")[0]
                yield name, least, major


def _found(name: str, major: str) -> str | None:
    """Gives the version of the library that loads, or None."""
    _, folder, soname, function = LIBRARIES[name]
    file = f"{soname}.{major}"
    paths = [
        str(Path(root) / "nvidia" / folder / "lib" / file) for root in sys.path
    ]
    for path in (*(p for p in paths if Path(p).exists()), file):
        try:
            library = ctypes.CDLL(path)
            return _version(name, getattr(library, function))
        except (OSError, AttributeError):
            continue
    return None


def _version(name: str, function: Any) -> str:
    """Asks a library for its version and writes it as "2.27.7"."""
    if name == "cudnn":
        function.restype = ctypes.c_size_t
        number = function()
        parts = number // 10000, number // 100 % 100, number % 100
        return ".".join(map(str, parts))
    answer = ctypes.c_int()
    function(ctypes.byref(answer))
    number = answer.value
    if name == "cudart":
        return f"{number // 1000}.{number % 1000 // 10}"
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


if __name__ == "__main__":
    json.dump(report(), sys.stdout)
