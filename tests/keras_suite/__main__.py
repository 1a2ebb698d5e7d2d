"""Prints the table of suites and modes; see the package's docstring."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.keras_suite import comparison, runner
from tests.keras_suite import files as files_lib
from tests.keras_suite.differences import JUDGED, known_in


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; gives 1 if a mode is not what is known of it."""
    options = _parse(arguments)
    modes = ["stock", *(m for m in options.mode if m != "stock")]
    results: dict[str, dict[str, runner.Outcome]] = {m: {} for m in modes}
    uncollected: dict[str, str] = {}
    for suite in files_lib.SUITES:
        files = files_lib.files_of(suite, options.only)
        for mode in modes if files else ():
            if not files_lib.runs_in(suite, mode):
                continue
            found = runner.run_files(files, mode)
            results[mode] |= found.outcomes
            uncollected |= found.uncollected
            counts = Counter(o.kind for o in found.outcomes.values())
            print(
                f"{suite:14} {mode:14} {found.seconds:5.0f} s  {dict(counts)}",
                flush=True,
            )
    print("\npassed/failed/skipped\n" + comparison.table(results, modes))
    _print_left_out(results["stock"], uncollected)
    right = [_print_mode(results, mode) for mode in modes[1:]]
    if options.json:
        _write(options.json, results, uncollected)
    return 0 if all(right) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.keras_suite")
    parser.add_argument(
        "--mode",
        type=lambda text: text.split(","),
        default=["stock", "layer", "mirrored"],
        help=f"comma-separated, of {', '.join(files_lib.MODES)}; "
        "stock is always run",
    )
    parser.add_argument(
        "--only",
        default="*",
        help="comma-separated patterns of files, such as 'callbacks/*'",
    )
    parser.add_argument("--json", type=Path, help="file for all outcomes")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.mode) - set(files_lib.MODES))
    if unknown:
        parser.error(
            f"unknown mode {unknown}; choose from {files_lib.MODES}"
        )
    return options


def _print_left_out(
    stock: Mapping[str, runner.Outcome], uncollected: Mapping[str, str]
) -> None:
    print("\nleft out, since a package is not installed:")
    for file, count in comparison.left_out(stock).items():
        print(f"  {file}: {count} tests")
    for file, text in uncollected.items():
        print(f"  {file}: all; {text.strip().splitlines()[-1]}")


def _print_mode(
    results: Mapping[str, comparison.Outcomes], mode: str
) -> bool:
    """Prints a mode's differences; gives whether they are the known ones.

    A mode that is not judged is always right.
    """
    names = results[mode]
    stock = {
        n: o
        for n, o in results["stock"].items()
        if _suite_ran(comparison.file_of(n), mode)
    }
    found = comparison.compare(stock, names, known_in(mode))
    print(f"\n--- {mode}: differs from stock, by cause")
    for cause, count in Counter(found.listed.values()).most_common():
        print(f"{count:4}  {cause}")
        for name, of in found.listed.items():
            if of == cause:
                print(f"        {name.removeprefix('keras/src/')}")
    for name, text in found.unlisted.items():
        text = text[-3000:] if mode in JUDGED else text.splitlines()[-1]
        print(f"\nNOT LISTED {name}\n{text}")
    for name in found.gone:
        print(f"\nLISTED, BUT AS IN STOCK {name}")
    print(
        f"{mode}: {len(found.listed)} known, {len(found.unlisted)} not "
        f"listed, {len(found.gone)} gone"
    )
    return found.right or mode not in JUDGED


def _suite_ran(file: str, mode: str) -> bool:
    return any(
        file in files_lib.files_of(suite)
        for suite in files_lib.SUITES
        if files_lib.runs_in(suite, mode)
    )


def _write(
    file: Path,
    results: Mapping[str, Mapping[str, runner.Outcome]],
    uncollected: Mapping[str, str],
) -> None:
    outcomes = {
        mode: {n: dataclasses.asdict(o) for n, o in found.items()}
        for mode, found in results.items()
    }
    document = {"outcomes": outcomes, "uncollected": dict(uncollected)}
    file.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    sys.exit(main())
