"""Lines come out as a terminal would leave them, whatever the cuts."""

from __future__ import annotations

import pytest

from tfmulti.launch.output import (
    LARGEST_LINE_BYTES,
    PROGRESS_S,
    UNFINISHED_S,
    Lines,
)

TEXT = "a\nzwölf\r\n\n10%\r20%\r100%\r\nende".encode()
SHOWN = [b"a", "zwölf".encode(), b"", b"100%", b"ende"]


@pytest.mark.parametrize("size", range(1, len(TEXT) + 1))
def test_any_cut_gives_the_same_lines(size):
    lines = Lines(0.0)
    shown = []
    for start in range(0, len(TEXT), size):
        shown += lines.feed(TEXT[start : start + size], 0.0)
    assert shown + lines.finish(0.0) == SHOWN


def test_a_progress_bar_is_shown_now_and_then():
    lines = Lines(0.0)
    assert lines.feed(b"10%\r20%\r3", 1.0) == []
    assert lines.overdue(PROGRESS_S - 0.1) == []
    assert lines.overdue(PROGRESS_S) == [b"20%"]
    assert lines.feed(b"0%\r", PROGRESS_S) == []
    assert lines.overdue(PROGRESS_S + 1) == []
    assert lines.overdue(2 * PROGRESS_S) == [b"30%"]
    assert lines.feed(b"100%\n", 2 * PROGRESS_S) == [b"100%"]


def test_a_line_without_an_end_is_shown_after_a_while():
    lines = Lines(0.0)
    assert lines.feed(b"Loading...", 10.0) == []
    assert lines.overdue(10.0 + UNFINISHED_S / 2) == []
    assert lines.overdue(10.0 + UNFINISHED_S) == [b"Loading..."]
    assert lines.overdue(20.0) == []
    assert lines.feed(b" done\n", 21.0) == [b" done"]


def test_keras_backspaces_are_dropped():
    assert Lines(0.0).feed(b"\b\b\b\b3/10\n", 0.0) == [b"3/10"]


def test_a_line_may_not_grow_for_ever():
    lines = Lines(0.0)
    assert lines.feed(b"x" * (LARGEST_LINE_BYTES + 1), 0.0) != []


def test_the_last_line_that_says_something_is_remembered():
    lines = Lines(0.0)
    assert lines.last == b""
    lines.feed(b"1\n2\n\n  \n", 0.0)
    assert lines.last == b"2"
    lines.feed(b"end", 0.0)
    lines.finish(0.0)
    assert lines.last == b"end"
