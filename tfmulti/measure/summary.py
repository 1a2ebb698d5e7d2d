"""The words on screen: a line for each epoch, and the closing summary.

Pure: records in, text out.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfmulti.measure.records import EpochRecord, RunSummary
from tfmulti.units import count_text, counted, duration_text

# Metrics that are shares of one are shown in percent.
SHARES = frozenset(
    {
        "accuracy",
        "val_accuracy",
        "top5_accuracy",
        "val_top5_accuracy",
        "judge_accuracy",
        "share_sure",
    }
)


def metric_text(name: str, value: float) -> str:
    """Gives one metric as people read it: 'accuracy 98.1 %'."""
    words = name.replace("_", " ")
    if name in SHARES:
        return f"{words} {100 * value:.1f} %"
    if name.startswith("count_"):
        return f"{words.removeprefix('count ')} {value:.0f}"
    return f"{words} {value:.4g}"


def metrics_text(metrics: Mapping[str, float]) -> str:
    """Gives all metrics in one line."""
    return ", ".join(metric_text(k, v) for k, v in metrics.items())


def epoch_line(record: EpochRecord, epochs: int) -> str:
    """Gives one line on one epoch, for where no progress bar can be drawn."""
    head = f"epoch {record.epoch:>{len(str(epochs))}}/{epochs}"
    parts = [head, f"step {record.step}", metrics_text(record.metrics)]
    if record.examples_per_s is not None:
        parts.append(f"{count_text(record.examples_per_s)} examples/s")
    return " · ".join(part for part in parts if part)


def summary_text(summary: RunSummary) -> str:
    """Gives the closing summary: a table of two columns."""
    rows = [
        ("experiment", summary.experiment),
        ("replicas", _replicas(summary)),
        ("parameters", f"{summary.parameters:,} ({summary.precision})"),
        (
            "trained",
            f"{counted(summary.epochs, 'epoch')}, "
            f"{counted(summary.steps, 'step')}",
        ),
        ("speed", _speed(summary)),
        ("result", metrics_text(summary.metrics)),
        ("wall time", duration_text(summary.wall_s)),
        ("run folder", summary.run_dir),
    ]
    rows += [(f"  {what}", name) for what, name in summary.files.items()]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def _replicas(summary: RunSummary) -> str:
    each = summary.replicas // summary.workers
    text = f"{summary.replicas} x {summary.device}, {summary.strategy}"
    if summary.workers > 1:
        text += f" ({summary.workers} workers x {each})"
    return text


def _speed(summary: RunSummary) -> str:
    if summary.examples_per_s is None or summary.step_ms is None:
        return "not measured (fewer than two steps)"
    return (
        f"{count_text(summary.examples_per_s)} examples/s, median step "
        f"{summary.step_ms:.3g} ms (without the first step, which compiles)"
    )
