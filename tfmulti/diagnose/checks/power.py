"""Power caps and clocks: a GPU that is kept slower than it was made.

A cap below the default slows whatever draws more. Among the driver's reasons
for low clocks, heat and the power brake are faults of cooling and supply;
reaching a cap that is the default is the normal state of a busy GPU.
https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
"""

from __future__ import annotations

from collections.abc import Iterator

from tfmulti.diagnose.findings import Finding, gpu_names
from tfmulti.diagnose.machine import Machine
from tfmulti.hardware.smi_query import GpuState

# The driver's words, and what to do.
SLOWDOWNS = {
    "hw_thermal_slowdown": "Mend the cooling: fans, dust, air flow, inlet "
    "temperature.",
    "sw_thermal_slowdown": "Mend the cooling: fans, dust, air flow, inlet "
    "temperature.",
    "hw_power_brake_slowdown": "Mend the power supply: cables, redundant "
    "supplies, the rack's limit.",
    "hw_slowdown": "Look at temperature, power cables and supply.",
}


def check(machine: Machine) -> Iterator[Finding]:
    """Looks at power limits, set clocks and reasons for low clocks."""
    for gpu in machine.gpus:
        yield from _power(gpu)
        yield from _clock(gpu)
        yield from _slowdowns(gpu)


def _power(gpu: GpuState) -> Iterator[Finding]:
    limit, default = gpu.power_limit_w, gpu.power_default_w
    if limit is not None and default is not None and limit < default:
        yield Finding(
            code="power_capped",
            severity="warning",
            subject=gpu_names([gpu.index]),
            evidence=f"it may draw {limit:g} W of {default:g} W "
            f"({limit / default:.0%})",
            remedy=f"nvidia-smi -i {gpu.index} -pl {default:g}",
        )


def _clock(gpu: GpuState) -> Iterator[Finding]:
    setting, default = gpu.clock_setting_mhz, gpu.clock_default_mhz
    if setting is not None and default is not None and setting < default:
        yield Finding(
            code="clock_capped",
            severity="warning",
            subject=gpu_names([gpu.index]),
            evidence=f"programs run at {setting} MHz, by default at "
            f"{default} MHz",
            remedy=f"nvidia-smi -i {gpu.index} -rac",
        )


def _slowdowns(gpu: GpuState) -> Iterator[Finding]:
    # The first is the most telling: hw_slowdown comes with the others.
    active = [name for name in SLOWDOWNS if name in gpu.slowdowns]
    if not active:
        return
    heat = (
        f" at {gpu.temperature_c} C" if gpu.temperature_c is not None else ""
    )
    yield Finding(
        code="throttled",
        severity="warning",
        subject=gpu_names([gpu.index]),
        evidence=f"clocks are held down: {', '.join(active)}{heat}",
        remedy=SLOWDOWNS[active[0]],
    )
