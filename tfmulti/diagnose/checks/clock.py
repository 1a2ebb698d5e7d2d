"""The clock: logs, certificates and leases of several hosts rely on it."""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at whether the clock follows a time server."""
    if machine.host.clock_synchronised is False:
        yield Finding(
            code="clock_free",
            severity="note",
            subject="host",
            evidence="the clock follows no time server (NTPSynchronized=no)",
            remedy="timedatectl set-ntp true, or start chronyd.",
        )
