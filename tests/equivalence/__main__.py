"""Prints the table of programs and topologies; see the package's docstring."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Before anything imports TensorFlow: quiet, and no search for GPUs.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from tests.equivalence.comparison import Distance, judge
from tests.equivalence.program import Program
from tests.equivalence.programs import all_programs
from tests.equivalence.runner import (
    TOPOLOGIES,
    Outcome,
    run_topology,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; gives 1 if a program failed anywhere."""
    options = _parse(arguments)
    chosen = [p for p in all_programs() if _matches(p.name, options.only)]
    names = [program.name for program in chosen]
    # One device and the first topology side by side, a process each or two.
    with ThreadPoolExecutor(1) as pool:
        one = pool.submit(_timed, "one", names)
        first = _timed(options.topology[0], names)
        right = one.result()
    table: dict[str, dict[str, Distance]] = {name: {} for name in names}
    failures: dict[str, str] = {}
    for topology in options.topology:
        outcomes = first
        if topology != options.topology[0]:
            outcomes = _timed(topology, names)
        for program in chosen:
            cell = judge(right[program.name], outcomes[program.name])
            table[program.name][topology] = cell
            failed = cell.error > program.tolerance
            if failed:
                failures[f"{program.name} on {topology}"] = cell.where
            _row(program, topology, cell, failed, outcomes[program.name])
        if options.json:
            _write(options.json, table, failures)
    _print_table(chosen, options.topology, table)
    _print_failures(failures)
    return 1 if failures else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.equivalence")
    several = [name for name in TOPOLOGIES if name != "one"]
    parser.add_argument(
        "--topology",
        type=lambda text: text.split(","),
        default=several,
        help=f"comma-separated, of {', '.join(several)}; all by default",
    )
    parser.add_argument(
        "--only",
        default="*",
        help="comma-separated patterns of names, such as 'loss/*'",
    )
    parser.add_argument("--json", type=Path, help="file for the table")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.topology) - set(several))
    if unknown:
        parser.error(f"unknown topology {unknown}; choose from {several}")
    return options


def _matches(name: str, patterns: str) -> bool:
    return any(fnmatch.fnmatch(name, p) for p in patterns.split(","))


def _timed(topology: str, names: Sequence[str]) -> dict[str, Outcome]:
    before_s = time.monotonic()
    outcomes = run_topology(topology, names)
    took_s = time.monotonic() - before_s
    cpu_s = sum(outcome.cpu_seconds for outcome in outcomes.values())
    print(
        f"{len(names)} programs on {topology}: {took_s:.0f} s, "
        f"{cpu_s:.0f} s of processor time",
        flush=True,
    )
    return outcomes


def _row(
    program: Program,
    topology: str,
    cell: Distance,
    failed: bool,
    outcome: Outcome,
) -> None:
    mark = "FAIL" if failed else "ok"
    where = cell.where.strip().splitlines()[-1][:100] if failed else ""
    print(
        f"{mark:4} {topology:10} {program.name:48} {cell.error:9.1e} "
        f"{outcome.seconds:5.1f} s  {where}",
        flush=True,
    )


def _print_table(
    programs: Iterable[Program],
    topologies: Sequence[str],
    table: dict[str, dict[str, Distance]],
) -> None:
    print("\n" + f"{'program':48}" + "".join(f"{t:>12}" for t in topologies))
    for program in programs:
        errors = [table[program.name][t].error for t in topologies]
        cells = "".join(
            f"{error:11.1e}" + ("!" if error > program.tolerance else " ")
            for error in errors
        )
        print(f"{program.name:48}{cells}")


def _print_failures(failures: dict[str, str]) -> None:
    for name, text in failures.items():
        print(f"\n--- {name}\n{text.strip()[-2500:]}")
    print(f"\n{len(failures)} failures")


def _write(
    file: Path,
    table: dict[str, dict[str, Distance]],
    failures: dict[str, str],
) -> None:
    errors = {
        name: {topology: cell.error for topology, cell in row.items()}
        for name, row in table.items()
    }
    file.write_text(
        json.dumps({"errors": errors, "failures": failures}, indent=1)
    )


if __name__ == "__main__":
    sys.exit(main())
