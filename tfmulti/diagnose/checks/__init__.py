"""The checks: each file holds one idea and a function `check`.

    check(machine) -> findings, none where nothing is wrong or nothing known

The order here is the order in which findings of equal severity are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tfmulti.diagnose.checks import (
    clock,
    cores,
    driver,
    health,
    isolation,
    libraries,
    limits,
    memory,
    mixed,
    nvlink,
    pcie,
    peers,
    power,
    shared_memory,
    sharing,
    software,
    visibility,
)
from tfmulti.diagnose.findings import Finding, by_severity
from tfmulti.diagnose.machine import Machine

CHECKS: tuple[Callable[[Machine], Iterator[Finding]], ...] = tuple(
    module.check
    for module in (
        driver,
        software,
        visibility,
        libraries,
        health,
        sharing,
        power,
        pcie,
        nvlink,
        peers,
        isolation,
        mixed,
        shared_memory,
        limits,
        memory,
        cores,
        clock,
    )
)


def diagnose(machine: Machine) -> tuple[Finding, ...]:
    """Lists what is wrong with a machine, the gravest first."""
    return by_severity(
        finding for check in CHECKS for finding in check(machine)
    )
