"""Packages that Keras's tests import and this environment need not have.

Many test files import jax, torch, pandas or grain at their head and use them
in a few tests only, for Keras's other backends. While such a file is being
imported an absent package is a stand-in, of which every attribute is a
stand-in again. A test that then uses one, or imports the package itself, is
skipped with that reason, so that the rest of the file still runs.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest

PACKAGES = ("grain", "jax", "orbax", "pandas", "tensorboard", "torch")


def absent_packages() -> tuple[str, ...]:
    """Lists those of `PACKAGES` that are not installed."""
    return tuple(p for p in PACKAGES if importlib.util.find_spec(p) is None)


class StandIn(ModuleType):
    """An absent package, or anything in it.

    Args:
        name: Its full name.
        collecting: A list that is empty once tests run: from then on every
            use skips the test.
    """

    def __init__(self, name: str, collecting: list[bool]):
        super().__init__(name)
        self.__path__: list[str] = []
        self._collecting = collecting

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._used(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        return self._used("__call__")

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        del bases
        return (_Base,)

    def _used(self, what: str) -> StandIn:
        if not self._collecting:
            skip_for(self.__name__)
        return StandIn(f"{self.__name__}.{what}", self._collecting)


class _Base:
    """What a class of a test file has instead of an absent base."""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.__init__ = _skip_when_made  # type: ignore[assignment]


def _skip_when_made(self: Any, *args: Any, **kwargs: Any) -> None:
    del args, kwargs
    skip_for(f"a base of {type(self).__name__}")


def skip_for(name: str) -> None:
    """Skips the running test for want of a package."""
    pytest.skip(reason(name))


def reason(name: str) -> str:
    """Says why a test is left out."""
    return f"left out: needs {name}, which is not installed"


def named_in(error: BaseException) -> str | None:
    """Gives the absent package that an error, or its cause, is about."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ImportError):
            text = f"{cause.name} {cause}".lower()
            for package in absent_packages():
                if package in text:
                    return package
        cause = cause.__cause__ or cause.__context__
    return None


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for absent packages and all that is in them."""

    def __init__(self, packages: Sequence[str], collecting: list[bool]):
        self._packages = packages
        self._collecting = collecting

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Answers `import` as `sys.meta_path` asks."""
        del path, target
        if name.split(".")[0] not in self._packages:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(
        self, spec: importlib.machinery.ModuleSpec
    ) -> ModuleType:
        """Makes the module of a spec."""
        return StandIn(spec.name, self._collecting)

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing; there is no source."""


@contextlib.contextmanager
def stand_ins() -> Iterator[None]:
    """Lets absent packages be imported inside; not any more afterwards."""
    packages, collecting = absent_packages(), [True]
    finder = Finder(packages, collecting)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        collecting.clear()
        sys.meta_path.remove(finder)
        for name in list(sys.modules):
            if name.split(".")[0] in packages:
                del sys.modules[name]
