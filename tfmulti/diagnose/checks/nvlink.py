"""NVLink: links that are down, and a switch fabric that did not come up.

Modules on a board (SXM) have all their links wired. Cards with bridges have
as many as their bridge, the same for each that has one. A single GPU has
nobody to be linked with.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.expected import nvlinks
from tfmulti.diagnose.findings import Finding, gpu_names
from tfmulti.diagnose.machine import Machine


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at links and fabric."""
    waiting = [
        gpu for gpu in machine.gpus if gpu.fabric not in (None, "Completed")
    ]
    if waiting:
        yield Finding(
            code="fabric_down",
            severity="error",
            subject=gpu_names(gpu.index for gpu in waiting),
            evidence=f"the NVSwitch fabric is {waiting[0].fabric!r}, not "
            "'Completed': CUDA cannot start",
            remedy="Start nvidia-fabricmanager, in the driver's very "
            "version, and read its log.",
        )
    elif len(machine.gpus) > 1:
        yield from _links(machine)


def _links(machine: Machine) -> Iterator[Finding]:
    up = {links.gpu: len(links.up) for links in machine.nvlinks}
    down = {links.gpu: links.down for links in machine.nvlinks}
    for gpu in machine.gpus:
        # These are joined directly: a virtual machine that has only some of
        # a board's sees the links to the others down.
        if machine.host.virtual and "SXM2" in gpu.name:
            continue
        peers = [
            up.get(other.index, 0)
            for other in machine.gpus
            if other.name == gpu.name
        ]
        wired = nvlinks(gpu.name) if up else None
        expected = max(wired or 0, *peers, 0)
        found = up.get(gpu.index, 0)
        # A card without a bridge is no fault, whatever others have.
        if found >= expected or (wired is None and not found):
            continue
        named = ", ".join(map(str, down.get(gpu.index, ())))
        yield Finding(
            code="nvlink_down",
            severity="error",
            subject=gpu_names([gpu.index]),
            evidence=f"{found} of {expected} NVLinks are up"
            + (f"; down: {named}" if named else ""),
            remedy="Look for Xid 74 in dmesg, reset the GPUs or reboot; seat "
            "the bridge or have the board exchanged if it comes back.",
        )
