"""metrics.jsonl: one line of JSON for each epoch, appended as it ends.

A line is written whole and flushed, so that a run that dies leaves every
epoch that it finished, and `tail -f` follows a run that lives.
"""

from __future__ import annotations

import json
from pathlib import Path

from tfmulti.errors import UsageError
from tfmulti.measure.records import EpochRecord

METRICS = "metrics.jsonl"


def check_fresh(run_dir: str) -> None:
    """Refuses a folder that holds the metrics of a run already.

    Raises:
        UsageError: It does; a second run would append to them.
    """
    if Path(run_dir, METRICS).exists():
        raise UsageError(
            received=f"--run_dir={run_dir}, which holds the metrics of a run",
            allowed=f"a new folder, or one without a {METRICS}",
            remedy="Give another --run_dir, or move that run away.",
        )


def append_epoch(path: Path, record: EpochRecord) -> None:
    """Adds one epoch's line to the file, which is made when missing."""
    line = json.dumps(record.to_json(), allow_nan=False)
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def read_epochs(path: Path) -> tuple[EpochRecord, ...]:
    """Reads every whole line; a last line cut short by a crash is left out.

    Raises:
        UsageError: A line that is not the last is no epoch record.
    """
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(EpochRecord.from_json(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines) and not line.endswith("\n"):
                break
            raise UsageError(
                received=f"{path}, line {number}: {line.strip()[:60]!r}",
                allowed="lines of JSON as a run writes them",
                remedy="Name the metrics.jsonl of a run.",
            ) from error
    return tuple(records)
