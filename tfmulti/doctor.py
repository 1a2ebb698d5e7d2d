"""python -m tfmulti.doctor: says what is right and wrong here, and why.

                        this machine: GPUs, driver, TensorFlow, limits
    --record FILE       keeps what was read, as text, to be looked at elsewhere
    --recording FILE    looks at such a file instead of this machine
    --keras             the fixes of Keras 3, held against what is installed

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
from pathlib import Path
from typing import Any

from tfmulti import diagnose
from tfmulti.diagnose.recording import PROBE
from tfmulti.errors import TfmultiError, UsageError

PROBE_TIMEOUT_S = 120.0

# A driver that is being loaded takes seconds; one that hangs takes for ever.
COMMAND_TIMEOUT_S = 60.0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The flags; None: this process's.

    Returns:
        0 if all is well, 1 if something is not, 2 for wrong usage.
    """
    args = _parser().parse_args(argv)
    try:
        return _keras(args) if args.keras else _machine(args)
    except TfmultiError as error:
        print(f"tfmulti: {error}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfmulti doctor",
        description=(__doc__ or "").split("\n")[0],
        epilog="Exit status: 0 nothing wrong, or notes only; 1 errors or "
        "warnings; 2 wrong usage.",
    )
    looked_at = parser.add_mutually_exclusive_group()
    looked_at.add_argument(
        "--keras", action="store_true", help="the fixes of Keras 3"
    )
    looked_at.add_argument(
        "--recording",
        type=Path,
        metavar="FILE",
        help="look at this recording of a machine",
    )
    looked_at.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="keep what was read of this machine",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    return parser


def _keras(args: argparse.Namespace) -> int:
    facts = json.loads(probe("keras_fixes", hide_gpus=True))
    print(json.dumps(facts, indent=2) if args.json else keras_text(facts))
    return 1 if any(fix["changed"] for fix in facts["fixes"]) else 0


def _machine(args: argparse.Namespace) -> int:
    recording = (
        read_recording(args.recording)
        if args.recording
        else diagnose.gather(
            read=read_file, run=run_command, probe=_probe, env=os.environ
        )
    )
    if args.record:
        _write(args.record, diagnose.dump(recording))
    machine = diagnose.read_machine(recording)
    findings = diagnose.diagnose(machine)
    render = diagnose.as_json if args.json else diagnose.as_text
    print(render(machine, findings))
    return diagnose.exit_code(findings)


def read_recording(path: Path) -> diagnose.Recording:
    """Reads a recording.

    Raises:
        UsageError: It cannot be read or is none.
    """
    try:
        return diagnose.load(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(
            received=f"--recording {str(path)!r} ({error})",
            allowed="a file that --record wrote",
            remedy="Run python -m tfmulti.doctor --record FILE on the "
            "machine.",
        ) from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise UsageError(
            received=f"--record {str(path)!r} ({error})",
            allowed="a file that can be written",
            remedy="Name one in a folder of yours.",
        ) from None


def read_file(path: str) -> str | None:
    """Gives the text of a file, or None where it cannot be read."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return None


def run_command(
    command: Sequence[str], run: Callable[..., Any] = subprocess.run
) -> str | None:
    """Gives what a program prints; None where there is no such program.

    A program that fails says why on either stream. Only nvidia-smi's words
    are then of use; what other programs could not find out stays unknown.

    Args:
        command: The program and its arguments.
        run: Starts a process, as `subprocess.run`.
    """
    try:
        done = run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            env=os.environ | {"LC_ALL": "C"},
        )
    except OSError:
        return None
    except subprocess.TimeoutExpired:
        return f"no answer within {COMMAND_TIMEOUT_S:g} s"
    if done.returncode and command[0] != "nvidia-smi":
        return None
    return done.stdout or done.stderr


def _probe() -> str:
    try:
        return probe(PROBE)
    except TfmultiError as error:
        return str(error)


def probe(
    name: str,
    run: Callable[..., Any] = subprocess.run,
    hide_gpus: bool = False,
) -> str:
    """Runs one of `tfmulti.probes` and gives what it prints: JSON.

    Args:
        name: The probe's module.
        run: Starts a process, as `subprocess.run`.
        hide_gpus: Whether it does without GPUs, and so starts faster.

    Raises:
        TfmultiError: The probe failed; the message has its last line.
    """
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"} if hide_gpus else {}
    try:
        finished = run(
            [sys.executable, "-m", f"tfmulti.probes.{name}"],
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | hidden,
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TfmultiError(
            f"TensorFlow gave no answer within {PROBE_TIMEOUT_S:g} s"
        ) from None
    if finished.returncode:
        last = (finished.stderr.strip().splitlines() or ["no message"])[-1]
        raise TfmultiError(f"asking TensorFlow failed: {last}")
    return finished.stdout


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
