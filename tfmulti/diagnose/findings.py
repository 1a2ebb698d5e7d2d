"""A finding: what is wrong, how one sees it, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# An error stops training or spoils its results; a warning costs speed or may
# become an error; a note is worth knowing.
SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it could be.

    Attributes:
        code: Its kind, a word for programs: "pcie_width".
        severity: One of `SEVERITIES`.
        subject: What has it: "GPU 3", "host", "TensorFlow".
        evidence: What was read, with values.
        remedy: What to do, as an imperative sentence.
    """

    code: str
    severity: str
    subject: str
    evidence: str
    remedy: str

    def __post_init__(self):
        if self.severity not in SEVERITIES:
            raise ValueError(f"{self.severity!r} is none of {SEVERITIES}")


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sorts findings, the gravest first, else in the order given."""
    return tuple(sorted(findings, key=lambda f: SEVERITIES.index(f.severity)))


def exit_code(findings: Iterable[Finding]) -> int:
    """Gives 1 if there is an error or a warning, else 0."""
    return int(any(finding.severity != "note" for finding in findings))


def gpu_names(indices: Iterable[int]) -> str:
    """Names GPUs: "GPU 3", "GPUs 0-3, 6"."""
    numbers = sorted(set(indices))
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [
        f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs
    ]
    return f"GPU{'s' if len(numbers) > 1 else ''} {', '.join(words)}"
