"""What machines reach of their peaks, learnt from published measurements.

The part of the peak is a product of three factors, each shrunk towards one
where few measurements speak for it, so that a new model or GPU is served by
what its relatives have in common:

    family x precision  >  GPU architecture x segment x precision  >  model
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tfmulti.planner.facts import (
    GpuModel,
    Row,
    Setup,
    Work,
    find_work,
    gpus,
    table,
    works,
)
from tfmulti.planner.step import Constants, Step, items_s, predict

Key = tuple[str, ...]

# How many measurements a factor's own opinion must outweigh.
SHRINK = (1.0, 3.0, 3.0)

# A first guess of the part reached, which the factors correct.
TYPICAL = 0.3

# Rows that do not say their batch: the usual one of their benchmarks.
UNSAID_BATCH = 64.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One published measurement; the series are rows of one experiment."""

    identifier: str
    series: str
    source: str
    setup: Setup
    units_per_s: float
    efficiency: float | None
    baseline: int


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """The factors, as logarithms, and the constants of a step."""

    factors: tuple[Mapping[Key, float], ...]
    constants: Constants

    def reached(self, setup: Setup) -> float:
        """Gives the part of the peak that a set-up's GPUs reach."""
        keys = _keys(setup)
        logs = (f.get(k, 0.0) for f, k in zip(self.factors, keys, strict=True))
        return TYPICAL * math.exp(sum(logs))

    def step(self, setup: Setup) -> Step:
        """Predicts a step."""
        return predict(setup, self.reached(setup), self.constants)


def measurements() -> list[Measured]:
    """Reads those measurements that are of data parallelism, and complete."""
    known, cost = gpus(), works()
    found = (_measured(row, known, cost) for row in table("throughput"))
    return [row for row in found if row is not None]


def learn(
    rows: Iterable[Measured], constants: Constants | None = None
) -> Knowledge:
    """Fits the factors to measurements.

    Args:
        rows: What was measured.
        constants: Those of a step, which are held; None: the usual ones.

    Returns:
        What predicts other set-ups.
    """
    constants = constants or Constants()
    rest = [(_keys(r.setup), _log_reached(r, constants)) for r in rows]
    factors: list[Mapping[Key, float]] = []
    for index, weight in enumerate(SHRINK):
        factor = _factor([(keys[index], v) for keys, v in rest], weight)
        rest = [(keys, v - factor[keys[index]]) for keys, v in rest]
        factors.append(factor)
    return Knowledge(factors=tuple(factors), constants=constants)


def _factor(
    rest: Iterable[tuple[Key, float]], weight: float
) -> Mapping[Key, float]:
    groups: dict[Key, list[float]] = defaultdict(list)
    for key, value in rest:
        groups[key].append(value)
    return {
        name: sum(found) / (len(found) + weight)
        for name, found in groups.items()
    }


def _keys(setup: Setup) -> tuple[Key, ...]:
    precision = "half" if setup.precision in ("FP16", "AMP", "BF16") else (
        setup.precision
    )
    gpu, work = setup.gpu, setup.work
    return (
        (work.family, precision),
        (gpu.arch, gpu.segment, precision),
        (work.model, precision),
    )


def _log_reached(row: Measured, constants: Constants) -> float:
    """Gives the logarithm of what was reached over what is typical.

    The time of a step is known; the arithmetic's is what is left of it, and
    never less than a tenth.
    """
    setup = row.setup
    guess = predict(setup, TYPICAL, constants)
    measured = guess.units / row.units_per_s
    other = guess.exposed_s + constants.start_s * setup.accumulation
    arithmetic = max(measured - other, 0.1 * measured)
    typical = items_s(setup, TYPICAL) * setup.accumulation
    return math.log(typical / arithmetic)


def _batch(row: Row) -> float:
    """Reads the batch of a replica; some rows add a remark, some have none."""
    found = re.search(r"[\d.]+", row["batch_per_gpu"])
    batch = float(found[0]) if found else UNSAID_BATCH
    if row["batch_per_gpu"].startswith("global"):
        batch /= int(row["gpus_total"])
    return batch


def _measured(
    row: Row, known: Mapping[str, GpuModel], cost: list[Work]
) -> Measured | None:
    work = find_work(cost, row["model"], row["dataset_input"])
    gpu = known.get(row["gpu_key"])
    if gpu is None or work is None or not row["throughput"]:
        return None
    if row["unit"] != f"{work.unit}/s" or row["comm"].startswith("TP="):
        return None
    accumulated = row["grad_accum"]
    setup = Setup(
        gpu=gpu,
        work=work,
        precision=row["precision"],
        gpus=int(row["gpus_total"]),
        hosts=int(row["hosts"]),
        intra=row["intra_interconnect"],
        inter=row["inter_interconnect"],
        comm=row["comm"],
        replica_batch_size=_batch(row),
        accumulation=int(accumulated) if accumulated.isdigit() else 1,
        real_data=row["data"] == "real",
    )
    efficiency = row["computed_efficiency"]
    return Measured(
        identifier=row["id"],
        series=row["series"],
        source=row["source"],
        setup=setup,
        units_per_s=float(row["throughput"]),
        efficiency=float(efficiency) if efficiency else None,
        baseline=int(row["baseline_gpus"] or 1),
    )
