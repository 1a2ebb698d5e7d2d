"""Fixes: what is replaced in Keras or TensorFlow, checked, listed, undone.

    Fix (one fault)  ──has──►  Patch (one attribute of one class or module)
                                  wrap(original) -> replacement

A patch names what it expects to find by a digest of its source. On a version
that was verified the digest holds; on any other version a fix whose target
has changed is skipped with one warning, never applied blindly.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One attribute that a fix replaces.

    Attributes:
        target: Where it is: "package.module" or "package.module:Class".
        attribute: Its name there.
        wrap: Takes what is there and gives what shall be there.
        digest: `digest_of` the expected original.
    """

    target: str
    attribute: str
    wrap: Callable[[Any], Any]
    digest: str

    def owner(self) -> Any:
        """Imports the module or class that holds the attribute."""
        module, _, name = self.target.partition(":")
        found = importlib.import_module(module)
        for part in name.split(".") if name else ():
            found = getattr(found, part)
        return found


@dataclass(frozen=True, kw_only=True)
class Fix:
    """One fault of others and what mends it.

    Attributes:
        name: Short name, as the doctor lists it.
        fault: What is wrong without it, in one sentence.
        upstream: Where it is reported, or "" where it is not.
        versions: The versions that have the fault, as verified.
        patches: What is replaced.
    """

    name: str
    fault: str
    upstream: str
    versions: str
    patches: tuple[Patch, ...]

    def changed(self) -> tuple[str, ...]:
        """Names the targets that are not what this fix was written for."""
        return tuple(
            f"{patch.target}.{patch.attribute}"
            for patch in self.patches
            if digest_of(_original(patch)) != patch.digest
        )


class Applied:
    """The patches that are in force, in order, so that they can be undone.

    Attributes:
        fixes: The fixes in force.
        strategies: How many strategies of this process were prepared.
        replicas: The most replicas that one of them has.
    """

    def __init__(self) -> None:
        self.strategies = 0
        self.replicas = 1
        self._undo: list[tuple[Any, str, Any]] = []
        self.fixes: list[Fix] = []

    def apply(self, fix: Fix) -> None:
        """Puts a fix in force; nothing happens if it is already."""
        if fix in self.fixes:
            return
        for patch in fix.patches:
            owner, original = patch.owner(), _original(patch)
            replacement = patch.wrap(original)
            replacement.__wrapped__ = original
            self._undo.append((owner, patch.attribute, original))
            setattr(owner, patch.attribute, replacement)
        self.fixes.append(fix)

    def undo(self) -> None:
        """Puts back everything that was replaced, last first."""
        while self._undo:
            owner, attribute, original = self._undo.pop()
            if original is None:  # It was not there.
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, original)
        self.fixes.clear()


@functools.cache
def applied() -> Applied:
    """Gives this process's one record of what is in force."""
    return Applied()


def digest_of(function: Any) -> str:
    """Gives a short digest of a function's or class's source."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return "unreadable"
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def _original(patch: Patch) -> Any:
    return inspect.getattr_static(patch.owner(), patch.attribute, None)
