"""The console script `tfmulti`: one word for each command.

`tfmulti run ...` is `python -m tfmulti.run ...`, and so for the others;
`tfmulti --flags ...` and `tfmulti train.py ...` mean `run`. A
command is a module of this package with a function `main(argv) -> exit code`,
loaded only when it is asked for.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence

from tfmulti import console
from tfmulti.errors import UsageError
from tfmulti.version import VERSION

COMMANDS: Mapping[str, str] = {
    "run": "train an experiment, or run your own script, on many devices",
    "doctor": "say what is right and wrong with this machine, and what to do",
    "plan": "say how fast GPUs will train, and for how much",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command that the first word names.

    Args:
        argv: The words after the program's name; None: this process's.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    console.take_signals()
    return console.guarded(lambda: _main(words))


def _main(words: list[str]) -> int:
    if not words or words[0] in ("--help", "-h", "help"):
        print(_help(), end="")
        return 0
    if words[0] == "--version":
        print(f"tfmulti {VERSION}")
        return 0
    if words[0].startswith("-") or _is_script(words[0]):
        words.insert(0, "run")
    if words[0] not in COMMANDS:
        raise UsageError(
            received=f"the command {words[0]!r}",
            allowed=f"{', '.join(COMMANDS)}, or a script such as train.py",
            remedy="See tfmulti --help.",
        )
    command = importlib.import_module(f"tfmulti.{words[0]}")
    return command.main(words[1:])


def _is_script(word: str) -> bool:
    return word not in COMMANDS and (
        word.endswith(".py") or os.sep in word or os.path.isfile(word)
    )


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "Trains Keras models on many GPUs with the result of one.",
            "",
            "  tfmulti COMMAND [FLAGS]     tfmulti COMMAND --help",
            "  tfmulti [FLAGS] [train.py]  the same as tfmulti run ...",
            "",
            "Commands:",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
