"""A worker's output, cut into lines that can stand among other workers'.

Progress bars rewrite their line with carriage returns, and prompts end
without a newline. Of a line that was rewritten only what a terminal would
show at last is kept; a line that stays unfinished is shown after a while.
"""

from __future__ import annotations

# How often a bar that rewrites its line is shown, and how long a line may
# stay unfinished, in seconds.
PROGRESS_S = 5.0
UNFINISHED_S = 1.0

LARGEST_LINE_BYTES = 1 << 16


class Lines:
    """Cuts one worker's bytes into lines, and remembers the last one.

    Args:
        now: The time at which the worker starts, in seconds.
    """

    def __init__(self, now: float):
        self._rest = b""
        self._last_byte = now
        self._last_shown = now
        self.last = b""  # that is not blank

    def feed(self, data: bytes, now: float) -> list[bytes]:
        """Takes what the worker wrote; gives the lines that are complete."""
        *complete, self._rest = (self._rest + data).split(b"\n")
        self._last_byte = now
        if len(self._rest) > LARGEST_LINE_BYTES:
            complete.append(self._rest)
            self._rest = b""
        return self._show(complete, now)

    def overdue(self, now: float) -> list[bytes]:
        """Gives what has waited too long for the end of its line."""
        done, rewritten, rest = self._rest.rpartition(b"\r")
        if rewritten and now - self._last_shown >= PROGRESS_S:
            self._rest = rest
            return self._show([done], now)
        if rest and not done and now - self._last_byte >= UNFINISHED_S:
            self._rest = b""
            return self._show([rest], now)
        return []

    def finish(self, now: float) -> list[bytes]:
        """Gives what is left when the worker has closed its output."""
        rest, self._rest = self._rest, b""
        return self._show([rest], now) if rest.strip() else []

    def _show(self, lines: list[bytes], now: float) -> list[bytes]:
        if lines:
            self._last_shown = now
        seen = [_as_on_a_terminal(line) for line in lines]
        for line in seen:
            if line.strip():
                self.last = line
        return seen


def _as_on_a_terminal(line: bytes) -> bytes:
    return line.rstrip(b"\r").rpartition(b"\r")[2].lstrip(b"\b")
