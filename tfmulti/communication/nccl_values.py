"""The kinds of value that an NCCL variable takes, and how each is checked.

NCCL itself is lenient where it should not be: an integer variable reads "8M"
as 8, a path level in small letters ("pix") is ignored without a word, and
an unknown algorithm fails only when the first communicator starts. Here each
kind reads a person's text or Python value, gives the form that NCCL
understands, and refuses the rest with a text that lists what is allowed.

    "ring,tree" -> Tokens.read -> "Ring,Tree"        "rings" -> ValueError
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class Kind(Protocol):
    """A kind of value: what it allows, in words, and how it is read."""

    @property
    def allowed(self) -> str:
        """What is accepted, for an error message."""

    def read(self, value: object) -> bool | int | str:
        """Gives the canonical value, or raises ValueError."""


@dataclass(frozen=True)
class Flag:
    """A switch that NCCL reads as 0 or 1."""

    allowed: str = "0 or 1"

    def read(self, value: object) -> bool:
        words = {"0": False, "false": False, "1": True, "true": True}
        return words[_known(str(value).lower(), words)]


@dataclass(frozen=True)
class Whole:
    """A whole number from `smallest` to `largest`, in `unit`."""

    smallest: int
    largest: int
    unit: str = ""

    @property
    def allowed(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"a whole number from {self.smallest} to {self.largest}{unit}"

    def read(self, value: object) -> int:
        if isinstance(value, (bool, float)):
            raise ValueError(value)
        number = int(str(value))
        if not self.smallest <= number <= self.largest:
            raise ValueError(value)
        return number


@dataclass(frozen=True)
class Choice:
    """One of a few words; case does not matter, the canonical one is kept."""

    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return ", ".join(self.words)

    def read(self, value: object) -> str:
        canonical = _canonical(self.words)
        return canonical[_known(str(value).lower(), canonical)]


@dataclass(frozen=True)
class Tokens:
    """A comma list of words, inverted by a leading `^`.

    With `scopes`, NCCL 2.24's longer form is accepted too: lists parted by
    semicolons, each but the first headed by a function's name and a colon:
    `Ring;AllReduce:^Tree,NVLS`.
    """

    words: tuple[str, ...]
    scopes: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        text = f"a comma list of {', '.join(self.words)}; ^ in front inverts it"
        if self.scopes:
            text += (
                f"; or one such list for a function, as in "
                f"'{self.words[0]};{self.scopes[0]}:^{self.words[-1]}' "
                f"(functions: {', '.join(self.scopes)})"
            )
        return text

    def read(self, value: object) -> str:
        parts = str(value).split(";")
        if len(parts) > 1 and not self.scopes:
            raise ValueError(value)
        return ";".join(
            self._read_part(part, first=i == 0)
            for i, part in enumerate(parts)
        )

    def _read_part(self, part: str, *, first: bool) -> str:
        scope, colon, listed = part.rpartition(":")
        if colon:
            scopes = _canonical(self.scopes)
            scope = scopes[_known(scope.strip().lower(), scopes)]
        elif not first:
            raise ValueError(part)
        listed = listed.strip()
        inverted = "^" if listed.startswith("^") else ""
        words = _canonical(self.words)
        tokens = [
            words[_known(token.strip().lower(), words)]
            for token in listed.removeprefix("^").split(",")
        ]
        return f"{scope}{colon}{inverted}{','.join(tokens)}"


@dataclass(frozen=True)
class Text:
    """Free text (a name, a path, a list of interfaces) without spaces."""

    allowed: str

    def read(self, value: object) -> str:
        text = str(value)
        if not text or text != text.strip() or "\n" in text:
            raise ValueError(value)
        return text


def _canonical(words: tuple[str, ...]) -> Mapping[str, str]:
    return {word.lower(): word for word in words}


def _known(word: str, words: Mapping[str, object]) -> str:
    if word not in words:
        raise ValueError(word)
    return word
