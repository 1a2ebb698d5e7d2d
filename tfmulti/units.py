"""Numbers as people read them: bytes, rates, durations, counts."""

from __future__ import annotations


def bytes_text(size_bytes: float) -> str:
    """Gives `size_bytes` in the largest binary unit that keeps it over one."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size_bytes) < 1024 or unit == "TiB":
            break
        size_bytes /= 1024
    return f"{size_bytes:.4g} {unit}"


def count_text(count: float) -> str:
    """Gives `count` with a decimal prefix: 1 234 567 -> '1.23 M'."""
    for prefix in ("", "k", "M", "G", "T", "P"):
        if abs(count) < 1000 or prefix == "P":
            break
        count /= 1000
    return f"{count:.3g} {prefix}".rstrip()


def counted(count: int, name: str) -> str:
    """Gives a number with its noun: '1 epoch', '2 epochs'."""
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def duration_text(duration_s: float) -> str:
    """Gives a duration as people say it: '850 ms', '12.3 s', '2 h 05 min'."""
    if duration_s < 1:
        return f"{duration_s * 1000:.3g} ms"
    if duration_s < 60:
        return f"{duration_s:.3g} s"
    minutes, seconds = divmod(round(duration_s), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"
