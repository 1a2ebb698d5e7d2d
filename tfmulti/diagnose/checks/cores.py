"""CPU cores for the input pipeline, and the frequency at which they run."""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding
from tfmulti.diagnose.machine import Machine

# A rule of thumb: decoding and augmenting images takes more, tokens less.
CORES_PER_GPU = 4


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at the cores that the process may use."""
    host, gpus = machine.host, len(machine.gpus)
    if not gpus:
        return
    if host.cores is not None and host.cores.usable < CORES_PER_GPU * gpus:
        cores = host.cores
        limits = [f"{cores.usable} usable core(s) for {gpus} GPU(s)"]
        if cores.quota is not None:
            limits.append(f"the group's quota is {cores.quota:g}")
        if host.machine_cores and cores.affinity < host.machine_cores:
            limits.append(f"placed on {cores.affinity}")
        if host.machine_cores:
            limits.append(f"the machine has {host.machine_cores}")
        yield Finding(
            code="cores_few",
            severity="warning",
            subject="host",
            evidence="; ".join(limits),
            remedy=f"Give the process {CORES_PER_GPU * gpus} or more "
            "(docker --cpus, Kubernetes limits, Slurm --cpus-per-task), or "
            "input will hold up the GPUs.",
        )
    if host.governor == "powersave":
        # The drivers of newer processors scale under this name as well.
        scales = (host.cpufreq_driver or "").endswith("pstate")
        yield Finding(
            code="governor",
            severity="note" if scales else "warning",
            subject="host",
            evidence=f"CPU governor powersave ({host.cpufreq_driver}): "
            + ("clocks rise late" if scales else "lowest clock always"),
            remedy="cpupower frequency-set -g performance",
        )
