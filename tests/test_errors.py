"""An error of usage is one line, whatever was received."""

from __future__ import annotations

from tfmulti.errors import UsageError


def test_a_value_with_several_lines_is_told_in_one():
    error = UsageError(
        received="a file\n  b'cut.bin'\tat byte 7\n",
        allowed="whole files",
        remedy="Write it again.",
    )
    assert str(error) == (
        "received a file b'cut.bin' at byte 7 ; allowed: whole files. Write "
        "it again."
    )
    assert error.received.count("\n") == 2
