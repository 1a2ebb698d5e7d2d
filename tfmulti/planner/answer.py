"""What a plan says: speed with its error band, cost, state, watts, sources.

The band is what leaving out did to published measurements of the same kind of
model: eight of ten lay inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfmulti.planner.facts import Setup
from tfmulti.planner.fit import Knowledge, Measured, learn
from tfmulti.planner.links import kind_inside, network_gbit

# Floats that an optimizer keeps for each parameter.
SLOTS = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}

# Series left out for a band; more change it little.
BAND_SERIES = 40

FLOAT_BYTES = 4

# A host's memory over that of its GPUs, and its watts beside theirs: 10.2 kW
# of a DGX H100 over 8 x 700 W, 6.5 kW of a DGX A100 over 8 x 400 W
# (hosts.csv), rounded up.
HOST_MEMORY = 2
HOST_POWER = 2.05


@dataclass(frozen=True, kw_only=True)
class Band:
    """Factors on a throughput between which eight of ten lay."""

    low: float
    high: float
    rows: int


def band(rows: Sequence[Measured], setup: Setup) -> Band:
    """Gives the error band of a prediction, from measurements left out.

    What is as unknown as the set-up is left out: all of a model where nobody
    measured this one, all of a GPU likewise, else one series.
    """
    known = [r for r in rows if r.setup.work.model == setup.work.model]
    kin = known or [
        r for r in rows if r.setup.work.family == setup.work.family
    ]
    seen = any(r.setup.gpu.name == setup.gpu.name for r in rows)
    names = sorted({_group(row, bool(known), seen) for row in kin})
    names = names[:: -(-len(names) // BAND_SERIES)]
    factors = []
    for name in names:
        knowledge = learn(
            r for r in rows if _group(r, bool(known), seen) != name
        )
        factors += [
            row.units_per_s / knowledge.step(row.setup).units_per_s
            for row in kin
            if _group(row, bool(known), seen) == name
        ]
    factors.sort()
    tenth = len(factors) // 10
    return Band(
        low=factors[tenth], high=factors[-1 - tenth], rows=len(factors)
    )


def _group(row: Measured, model_known: bool, gpu_known: bool) -> str:
    if not model_known:
        return row.setup.work.model
    return row.series if gpu_known else row.setup.gpu.name


def state_bytes(setup: Setup, optimizer: str, zero1: bool) -> dict[str, float]:
    """Gives each GPU's memory for weights, gradients and optimizer.

    Keras keeps all three in float32 under every mixed policy.
    """
    size = float(setup.work.params * FLOAT_BYTES)
    slots = size * SLOTS[optimizer] / (setup.gpus if zero1 else 1)
    return {"weights": size, "gradients": size, "optimizer": slots}


def answer(
    setup: Setup,
    knowledge: Knowledge,
    spread: Band,
    *,
    units: float,
    price_per_gpu_hour: float,
    optimizer: str,
    zero1: bool,
) -> dict[str, Any]:
    """Gives all that is said of one set-up, ready for JSON.

    Args:
        setup: The set-up.
        knowledge: What predicts its step.
        spread: The error band of its throughput.
        units: How many images, sequences or tokens are to be worked off.
        price_per_gpu_hour: In any currency; the cost is in the same.
        optimizer: One of `SLOTS`.
        zero1: Whether replicas share the optimizer's state.

    Returns:
        Figures with their units in the names, and sources.
    """
    step = knowledge.step(setup)
    hours = units / step.units_per_s / 3600
    state = state_bytes(setup, optimizer, zero1)
    per_host = -(-setup.gpus // setup.hosts)
    watts = per_host * setup.gpu.tdp_w * HOST_POWER
    return {
        "model": setup.work.model,
        "gpu": setup.gpu.name,
        "gpus": setup.gpus,
        "hosts": setup.hosts,
        "link": kind_inside(setup),
        "network_gbit_per_host": network_gbit(setup.inter),
        "unit": setup.work.unit,
        "units_per_s": step.units_per_s,
        "units_per_s_low": step.units_per_s * spread.low,
        "units_per_s_high": step.units_per_s * spread.high,
        "band_rows": spread.rows,
        "step_s": step.time_s,
        "compute_s": step.compute_s,
        "exposed_s": step.exposed_s,
        "waiting_s": step.together_s,
        "efficiency": step.efficiency,
        "binds": step.binds,
        "hours": hours,
        "hours_high": hours / spread.low,
        "cost": hours * setup.gpus * price_per_gpu_hour,
        "state_bytes": state,
        "state_fits": sum(state.values()) < setup.gpu.vram_gb * 1e9,
        "host_memory_gb": per_host * setup.gpu.vram_gb * HOST_MEMORY,
        "host_pcie_lanes": per_host * 16,
        "host_power_w": watts,
        "sources": [setup.gpu.source, setup.work.source],
    }
