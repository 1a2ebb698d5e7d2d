"""How well the planner foretells what it has not seen.

    python -m tests.planner.accuracy [--leave series|source|gpu|model]

Each series of `throughput.csv` (one experiment: a model, a GPU, a machine, a
batch) is left out in turn, the factors are learnt from the others, and the
series is predicted from its datasheets alone. `--leave` leaves out whole
sources, GPUs or models instead, which is harder. The few constants of a step
(`tfmulti/planner/step.py`) were set by hand with all rows in view; only the
factors of `fit.py` are learnt anew.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tfmulti.planner import links
from tfmulti.planner.fit import Knowledge, Measured, learn, measurements
from tfmulti.planner.step import Step

LEAVE: dict[str, Callable[[Measured], str]] = {
    "series": lambda row: row.series,
    "source": lambda row: row.source,
    "gpu": lambda row: row.setup.gpu.name,
    "model": lambda row: row.setup.work.model,
}

# Throughputs that differ by less were measured with no better repeatability.
ALIKE = 0.05


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A measurement, what was predicted, and the efficiency's error."""

    row: Measured
    step: Step
    efficiency_error: float | None

    @property
    def throughput_error(self) -> float:
        """Gives the relative error of the throughput."""
        return self.step.units_per_s / self.row.units_per_s - 1


def outcomes(rows: Sequence[Measured], leave: str) -> list[Outcome]:
    """Predicts every group of rows from all the others."""
    groups: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        groups[LEAVE[leave](row)].append(row)
    found = []
    for name, held in groups.items():
        knowledge = learn(r for r in rows if LEAVE[leave](r) != name)
        found += [_outcome(row, knowledge) for row in held]
    return found


def _outcome(row: Measured, knowledge: Knowledge) -> Outcome:
    step = knowledge.step(row.setup)
    error = None
    if row.efficiency is not None and row.baseline != row.setup.gpus:
        error = _efficiency(row, knowledge) - row.efficiency
    return Outcome(row=row, step=step, efficiency_error=error)


def _efficiency(row: Measured, knowledge: Knowledge) -> float:
    """Gives the efficiency over the row's own baseline."""
    setup, few = row.setup, row.baseline
    per_host = setup.gpus / setup.hosts
    hosts = max(1, min(setup.hosts, few, round(few / per_host)))
    base = knowledge.step(replace(setup, gpus=few, hosts=hosts))
    many = knowledge.step(setup)
    return many.units_per_s / setup.gpus / (base.units_per_s / few)


def link_pairs(rows: Sequence[Measured]) -> list[tuple[Outcome, Outcome]]:
    """Predicts the pairs of rows that differ only in the link, faster first.

    Both series of a pair are left out for both predictions: a twin among the
    examples would pull the other's prediction its way.
    """
    groups: dict[tuple[object, ...], list[Measured]] = defaultdict(list)
    for row in rows:
        setup = row.setup
        key = (row.source.split("@")[0], setup.gpu.name, setup.work.model,
               setup.work.input, setup.precision, setup.gpus, setup.comm,
               setup.replica_batch_size, setup.accumulation, setup.real_data)
        if setup.gpus > 1:
            groups[key].append(row)
    return [
        _pair(rows, one, other)
        for group in groups.values()
        for one, other in itertools.combinations(group, 2)
        if not _alike(one, other)
    ]


def _pair(
    rows: Sequence[Measured], one: Measured, other: Measured
) -> tuple[Outcome, Outcome]:
    out = {one.series, other.series}
    knowledge = learn(row for row in rows if row.series not in out)
    fast, slow = sorted((one, other), key=lambda r: -r.units_per_s)
    return _outcome(fast, knowledge), _outcome(slow, knowledge)


def _alike(one: Measured, other: Measured) -> bool:
    ratio = one.units_per_s / other.units_per_s
    return _link(one) == _link(other) or abs(math.log(ratio)) < ALIKE


def _link(row: Measured) -> tuple[str, float]:
    return links.kind_inside(row.setup), links.bus(row.setup)


def quantile(values: Iterable[float], part: float) -> float:
    """Gives the smallest value that a part of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def line(name: str, found: Sequence[Outcome]) -> str:
    """Gives one line of the table."""
    points = [
        100 * abs(o.efficiency_error)
        for o in found
        if o.efficiency_error is not None
    ]
    speed = [100 * abs(o.throughput_error) for o in found]
    scaling = (
        f"{statistics.median(points):8.1f} {quantile(points, 0.9):8.1f}"
        if points
        else f"{'-':>8} {'-':>8}"
    )
    return (
        f"{name:18} {len(points):6} {scaling} {len(speed):7} "
        f"{statistics.median(speed):8.1f} {quantile(speed, 0.9):8.1f}"
    )


def report(found: Sequence[Outcome]) -> str:
    """Gives the table: all rows, by GPU family, and by what binds."""
    lines = [
        f"{'':18} {'efficiency, points':>24} {'throughput, %':>25}",
        f"{'':18} {'rows':>6} {'median':>8} {'p90':>8} {'rows':>7} "
        f"{'median':>8} {'p90':>8}",
        line("all", found),
    ]
    by: Sequence[Callable[[Outcome], str]] = (
        lambda o: o.row.setup.gpu.arch,
        lambda o: o.step.binds,
    )
    for key in by:
        lines.append("")
        for name in sorted({key(o) for o in found}):
            lines.append(line(name, [o for o in found if key(o) == name]))
    return "\n".join(lines)


def pairs_text(pairs: Sequence[tuple[Outcome, Outcome]]) -> str:
    """Says how many pairs were ordered right, and which were not."""
    wrong = [
        f"  {fast.row.identifier} was faster than {slow.row.identifier}: "
        f"{fast.row.setup.intra} over {slow.row.setup.intra}"
        for fast, slow in pairs
        if fast.step.units_per_s <= slow.step.units_per_s
    ]
    right = len(pairs) - len(wrong)
    return "\n".join([
        f"pairs that differ only in the link: {right} of {len(pairs)} "
        "ordered right", *wrong,
    ])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--leave", choices=sorted(LEAVE), default="series")
    leave, rows = parser.parse_args().leave, measurements()
    print(report(outcomes(rows, leave)))
    print(f"\n{pairs_text(link_pairs(rows))}")


if __name__ == "__main__":
    main()
