"""Whole numbers in environment variables."""

from __future__ import annotations

from collections.abc import Mapping

from tfmulti.errors import UsageError


def whole(
    env: Mapping[str, str], name: str, otherwise: int | None = None
) -> int:
    """Reads a whole number from 0.

    Args:
        env: The environment.
        name: The variable.
        otherwise: Its value where it is not set; None: it must be.

    Raises:
        UsageError: It is missing, or not such a number.
    """
    text = env.get(name, "").strip()
    if not text and otherwise is not None:
        return otherwise
    if text.isdecimal() and text.isascii():
        return int(text)
    raise UsageError(
        received=f"{name}={text}" if name in env else f"no {name}",
        allowed="a whole number from 0",
        remedy=f"Correct {name}, or set TF_CONFIG for each worker.",
    )
