"""Limits of a process: pinned memory for InfiniBand, open files.

Every buffer that a NIC reads directly must be pinned. Under a limit, NCCL
fails when it registers its buffers ("ibv_reg_mr failed").
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine
from tfmulti.units import bytes_text

# A rule of thumb: what a dozen workers' sockets and data files stay below.
ENOUGH_FILES = 4096


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at the soft limits of this process."""
    host = machine.host
    if host.infiniband and host.memlock_bytes is not None:
        yield Finding(
            code="memlock_low",
            severity="error",
            subject="host",
            evidence=f"at most {bytes_text(host.memlock_bytes)} of memory "
            f"may be pinned, beside {len(host.infiniband)} InfiniBand or "
            "RoCE device(s)",
            remedy="ulimit -l unlimited (limits.conf: memlock; docker run "
            "--ulimit memlock=-1; systemd: LimitMEMLOCK=infinity).",
        )
    if host.open_files is not None and host.open_files < ENOUGH_FILES:
        yield Finding(
            code="open_files_low",
            severity="note",
            subject="host",
            evidence=f"a process may have {host.open_files} files open; "
            "sockets and data files of a large job are more",
            remedy="ulimit -n 65536",
        )
