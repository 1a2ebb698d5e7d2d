"""Command-line flags from one table: the parser, the help text, the split.

The flags live in an absl `FlagValues` of their own, never in the global one:
a script that runs under the launcher may define flags of the same names. A
table of `Flag` records is the one place that describes them.

    python -m tfmulti.run --replicas 2 train.py --replicas 7
                          `---- ours --´ `----- the script's -´
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from absl import flags as absl_flags

from tfmulti.errors import UsageError
from tfmulti.launch.job import Script

_DEFINE: Mapping[str, Any] = {
    "text": absl_flags.DEFINE_string,
    "whole": absl_flags.DEFINE_integer,
    "count": absl_flags.DEFINE_integer,
    "number": absl_flags.DEFINE_float,
    "switch": absl_flags.DEFINE_boolean,
    "pairs": absl_flags.DEFINE_multi_string,
}
# What a value of each kind may be; the records check the rest.
_ALLOWED: Mapping[str, str] = {
    "text": "a text that is not empty",
    "pairs": "KEY=VALUE",
    "whole": "a whole number",
    "count": "a whole number from 1",
    "number": "a number",
    "switch": "no value: the flag alone, or with no before its name",
}
_FLAGFILE = "flagfile"
# As absl says it: "flag --replicas=abc: invalid literal for int() ...".
_ILLEGAL = re.compile(r"flag --(\w+)=(.*?): ", re.DOTALL)
_HELP_COLUMN = 28
_WIDTH = 80


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One flag of a command.

    Attributes:
        name: Its name, without dashes.
        kind: "text", "whole" number, "count" (a whole number from 1),
            "number", "switch", or "pairs" for KEY=VALUE that may be given
            several times.
        value: What the help text calls its value; "" for a switch.
        group: The heading under which the help text lists it.
        help: One or two sentences.
    """

    name: str
    kind: str
    value: str = ""
    group: str
    help: str


def split(
    argv: Sequence[str], table: Sequence[Flag]
) -> tuple[list[str], Script | None]:
    """Parts a command line into the command's own flags and a script.

    The first word that is no flag and no flag's value is the script; `-m`
    names a module instead. All that follows is the script's, untouched.

    Args:
        argv: The command line without the program.
        table: The command's flags.

    Raises:
        UsageError: A module or a script is announced and not named.
    """
    single = {flag.name for flag in table if flag.kind == "switch"}
    single |= {f"no{name}" for name in single} | {"h"}
    valued = {flag.name for flag in table} - single | {_FLAGFILE}
    place = 0
    while place < len(argv):
        word = argv[place]
        if word in ("--", "-m") or not word.startswith("-") or word == "-":
            return list(argv[:place]), _script(argv[place:])
        place += 2 if word.lstrip("-") in valued else 1
    return list(argv), None


def parse(argv: Sequence[str], table: Sequence[Flag]) -> Mapping[str, Any]:
    """Reads the command's own flags.

    Args:
        argv: What `split` gave as the command's own.
        table: The command's flags.

    Returns:
        A value for each flag of the table; None where it was not given, or
        False for a switch.

    Raises:
        UsageError: A flag is unknown, lacks its value or has a wrong one.
    """
    values = absl_flags.FlagValues()
    for flag in table:
        default = False if flag.kind == "switch" else None
        _DEFINE[flag.kind](flag.name, default, flag.help, flag_values=values)
    words = ["--help" if word == "-h" else word for word in argv]
    try:
        rest = values(["tfmulti", *words])[1:]
    except UnicodeDecodeError:
        raise UsageError(
            received="a --flagfile that is no text",
            allowed="a text file with one flag a line",
            remedy="Name another file.",
        ) from None
    except (absl_flags.Error, ValueError) as error:
        # absl says by a ValueError that a switch takes no value.
        raise _refusal(error, table) from None
    if rest:
        raise UsageError(
            received=f"{rest[0]!r} among the flags",
            allowed="flags only, before the script",
            remedy="Name the script on the command line, not in a flag file.",
        )
    given = {flag.name: values[flag.name].value for flag in table}
    for flag in table:
        _check_text(flag, given[flag.name])
    return given


def help_text(usage: str, table: Sequence[Flag], closing: str) -> str:
    """Lays the flags out under their headings, between two texts."""
    parts = [usage.rstrip()]
    for group in dict.fromkeys(flag.group for flag in table):
        lines = [_entry(flag) for flag in table if flag.group == group]
        parts.append("\n".join([f"{group}:", *lines]))
    return "\n\n".join([*parts, closing.rstrip()]) + "\n"


def _refusal(error: Exception, table: Sequence[Flag]) -> UsageError:
    """Puts absl's complaint about a flag into our words."""
    found = _ILLEGAL.match(str(error))
    kinds = {flag.name: flag.kind for flag in table}
    if not found or found[1] not in kinds:
        return UsageError(
            received=_one_line(error),
            allowed="the flags that --help lists",
            remedy="Correct the flag, or see --help.",
        )
    name, value = found.groups()
    return UsageError(
        received=f"--{name}={value}",
        allowed=_ALLOWED[kinds[name]],
        remedy=f"Correct --{name}, or leave it out.",
    )


def _check_text(flag: Flag, value: Any) -> None:
    """Refuses what a shell gives for an unset variable: --data "$DATA"."""
    if flag.kind == "text" and value == "":
        _refuse_text(flag, "with an empty value")
    if flag.kind == "pairs":
        for pair in value or ():
            if not pair.partition("=")[0].strip():
                _refuse_text(flag, pair or "with an empty value")


def _refuse_text(flag: Flag, received: str) -> NoReturn:
    raise UsageError(
        received=f"--{flag.name} {received}",
        allowed=_ALLOWED[flag.kind],
        remedy=f"Correct --{flag.name}, or leave it out.",
    )


def _script(words: Sequence[str]) -> Script | None:
    if words[0] == "--":
        # Ends our flags; what follows is the script as without it.
        words = words[1:]
    if not words:
        return None
    if words[0] != "-m":
        return Script(path=words[0], argv=tuple(words[1:]))
    if len(words) == 1:
        raise UsageError(
            received="-m without a module",
            allowed="-m package.module",
            remedy="Name the module to run after -m.",
        )
    return Script(module=words[1], argv=tuple(words[2:]))


def _entry(flag: Flag) -> str:
    head = f"  --{flag.name}" + (f" {flag.value}" if flag.value else "")
    lines = textwrap.wrap(
        flag.help, _WIDTH - _HELP_COLUMN, break_on_hyphens=False
    )
    if len(head) < _HELP_COLUMN - 1:
        head, lines = head.ljust(_HELP_COLUMN) + lines[0], lines[1:]
    return "\n".join([head, *(" " * _HELP_COLUMN + line for line in lines)])


def _one_line(error: Exception) -> str:
    words = str(error).removeprefix("ERROR:: ").split()
    return " ".join(words).rstrip(".")
