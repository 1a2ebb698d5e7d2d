"""Train Keras 3 models on many GPUs with the result that one GPU gives.

Importing this package starts nothing: no TensorFlow, no devices, no logging.
`tfmulti.init` is the one public name that needs TensorFlow, and loads it when
it is first touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfmulti.version import VERSION as __version__

if TYPE_CHECKING:
    from tfmulti.strategy import init

__all__ = ["__version__", "init"]


def __getattr__(name: str) -> Any:
    if name == "init":
        import os

        from tfmulti.backend import check_backend
        from tfmulti.quiet import quiet_cpp, quiet_import

        check_backend(os.environ)
        quiet_cpp(os.environ)
        with quiet_import(os.environ):
            from tfmulti.strategy import init
        return init
    raise AttributeError(f"module 'tfmulti' has no attribute {name!r}")
