"""python -m tfmulti.doctor: says what is right and wrong here, and why.

    --keras    the fixes of Keras 3, held against the installed versions

TensorFlow is asked by a child process (`tfmulti.probes`), which may be slow
to start or fail, without harm to this one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfmulti.errors import TfmultiError

PROBE_TIMEOUT_S = 120.0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The flags; None: this process's.

    Returns:
        0 if all is well, 1 if something is not, 2 for wrong usage.
    """
    parser = argparse.ArgumentParser(
        prog="tfmulti doctor", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--keras", action="store_true", help="the fixes of Keras 3"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    args = parser.parse_args(argv)
    if not args.keras:
        parser.error("say what to look at: --keras")
    try:
        facts = probe("keras_fixes")
    except TfmultiError as error:
        print(f"tfmulti: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps(facts, indent=2) if args.json else keras_text(facts))
    return 1 if any(fix["changed"] for fix in facts["fixes"]) else 0


def probe(
    name: str, run: Callable[..., Any] = subprocess.run
) -> Mapping[str, Any]:
    """Runs one of `tfmulti.probes` and gives what it prints.

    Args:
        name: The probe's module.
        run: Starts a process, as `subprocess.run`.

    Raises:
        TfmultiError: The probe failed; the message has its last line.
    """
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    finished = run(
        [sys.executable, "-m", f"tfmulti.probes.{name}"],
        env=os.environ | quiet,
        capture_output=True,
        text=True,
        timeout=PROBE_TIMEOUT_S,
        check=False,
    )
    if finished.returncode:
        last = (finished.stderr.strip().splitlines() or ["no message"])[-1]
        raise TfmultiError(f"asking TensorFlow failed: {last}")
    return json.loads(finished.stdout)


def keras_text(facts: Mapping[str, Any]) -> str:
    """Renders the fixes for people: pure.

    Args:
        facts: What the probe `keras_fixes` printed.
    """
    verified = any(
        facts["keras"].startswith(f"{series}.") for series in facts["verified"]
    )
    lines = [
        f"Keras {facts['keras']} on TensorFlow {facts['tensorflow']}: "
        + ("verified" if verified else "not verified"),
        "",
    ]
    for fix in facts["fixes"]:
        state = "does not fit" if fix["changed"] else "fits"
        lines.append(f"{fix['name']:14} {state:13} {fix['fault']}")
        if fix["upstream"]:
            lines.append(f"{'':28} {fix['upstream']}")
        lines += [f"{'':28} changed: {name}" for name in fix["changed"]]
    lines += ["", *textwrap.wrap(_verdict(facts, verified), 78)]
    return "\n".join(lines)


def _verdict(facts: Mapping[str, Any], verified: bool) -> str:
    changed = [fix["name"] for fix in facts["fixes"] if fix["changed"]]
    if not changed:
        return "All fixes are put in force by tfmulti.init and tfmulti.run."
    if verified:
        return f"These fixes do not fit although verified: {changed}."
    return (
        f"Left out on this version: {', '.join(changed)}. Install Keras "
        f"{', '.join(facts['verified'])}.x to have them."
    )


if __name__ == "__main__":
    sys.exit(main())
