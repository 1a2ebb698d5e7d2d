"""From facts to findings: what `python -m tfmulti.doctor` says.

    recording.py   texts of files and programs, as gathered or from a file
    machine.py     the texts, read into one frozen record
    checks/        pure functions: a machine -> findings, one idea per file
    findings.py    severity, evidence, what to do
    report.py      findings and facts as text or JSON

Every decision is a pure function of a recording, so that a machine can be
looked at from afar (`--record`, `--recording`), and so that tests hold faulty
machines that nobody has at hand.
"""

from __future__ import annotations

from tfmulti.diagnose.checks import diagnose
from tfmulti.diagnose.findings import Finding, exit_code
from tfmulti.diagnose.machine import Machine, read_machine
from tfmulti.diagnose.recording import Recording, dump, gather, load
from tfmulti.diagnose.report import as_json, as_text

__all__ = [
    "Finding",
    "Machine",
    "Recording",
    "as_json",
    "as_text",
    "diagnose",
    "dump",
    "exit_code",
    "gather",
    "load",
    "read_machine",
]
