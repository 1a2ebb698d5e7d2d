"""The time of a step, by part.

    compute    arithmetic at what is reached of the peak, plus starting it
    exchange   the all-reduce, less what hides behind the backward pass
    together   waiting for the slowest, and for what hosts share

Efficiency is the time of one GPU over the time of many, for equal batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tfmulti.planner import links
from tfmulti.planner.facts import Setup

# Forward and backward, two operations for each multiply-add.
FLOPS_PER_MAC = 6


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What the tables of hardware do not say; fitted to measurements.

    Attributes:
        start_s: The time of a microbatch that does not shrink with it.
        hidden: The part of the compute time behind which an all-reduce can
            hide.
        latency_s: One hop of the ring, for all buckets of a step together.
        unequal: The relative wait for the slowest of two; it grows with the
            logarithm of the number of GPUs.
        server_bus: Bandwidth of variables kept in host memory, as a part of
            PCIe's.
        cores: The wait for the host's processors and storage with real
            data, relative, for each doubling of the GPUs in a host.
    """

    start_s: float = 0.01
    hidden: float = 0.5
    latency_s: float = 100e-6
    unequal: float = 0.012
    server_bus: float = 1.0
    cores: float = 0.01


@dataclass(frozen=True, kw_only=True)
class Step:
    """A predicted step; all times in seconds."""

    compute_s: float
    exchange_s: float
    exposed_s: float
    together_s: float
    units: float

    @property
    def time_s(self) -> float:
        """Gives the time of the step."""
        return self.compute_s + self.exposed_s + self.together_s

    @property
    def efficiency(self) -> float:
        """Gives the part of the GPUs' time that goes into computing."""
        return self.compute_s / self.time_s

    @property
    def units_per_s(self) -> float:
        """Gives the throughput of all GPUs."""
        return self.units / self.time_s

    @property
    def binds(self) -> str:
        """Names what takes time beyond computing."""
        if self.efficiency > 0.95:
            return "compute"
        return "exchange" if self.exposed_s > self.together_s else "waiting"


def items_s(setup: Setup, reached: float) -> float:
    """Gives the time of a microbatch's arithmetic, in seconds."""
    work = setup.work
    flops = FLOPS_PER_MAC * 1e9 * work.gmacs_per_unit * units(setup)
    peak = setup.gpu.tflops[setup.precision] * 1e12
    return flops / (peak * reached)


def units(setup: Setup) -> float:
    """Gives what one GPU works off in a microbatch, in the model's unit."""
    return setup.replica_batch_size * setup.work.units_per_item


def gradient_bytes(setup: Setup) -> float:
    """Gives what each replica sends in a step."""
    half = setup.precision in ("FP16", "AMP", "BF16")
    return setup.work.params * (2 if half else 4)


def predict(setup: Setup, reached: float, constants: Constants) -> Step:
    """Predicts a step.

    Args:
        setup: What is trained, on what.
        reached: The part of the datasheet's peak that the model reaches.
        constants: The rest of what was learnt from measurements.

    Returns:
        The step of all GPUs together.
    """
    micro = items_s(setup, reached) + constants.start_s
    compute = micro * setup.accumulation
    exchange = _exchange(setup, constants)
    hidden = constants.hidden * micro
    n, per_host = setup.gpus, setup.gpus / setup.hosts
    relative = constants.unequal * math.log2(n)
    if setup.real_data:
        relative += constants.cores * math.log2(per_host)
    return Step(
        compute_s=compute,
        exchange_s=exchange,
        exposed_s=math.hypot(exchange, hidden) - hidden,
        together_s=relative * compute,
        units=units(setup) * setup.accumulation * n,
    )


def _exchange(setup: Setup, constants: Constants) -> float:
    n = setup.gpus
    if n == 1:
        return 0.0
    size = gradient_bytes(setup)
    if "parameter" in setup.comm or "TF distributed" in setup.comm:
        # Every GPU fetches and sends all variables over the shared path.
        shared = links.PCIE_BUS[setup.gpu.pcie_gen] * links.GIGA
        inside = size * 2 / (shared * constants.server_bus)
        if setup.hosts == 1:
            return inside * math.log2(n) / 2
        return inside + 2 * size / links.bus_between(setup)
    hops = 2 * math.log2(n)
    rate = links.bus(setup)
    return 2 * (n - 1) / n * size / rate + hops * constants.latency_s
