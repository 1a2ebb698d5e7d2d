"""python -m tfmulti.plan: says how fast GPUs will train, and for how much.

    --model resnet50 --gpu "A100 SXM4 80GB" --gpus 8
    --gpu "H100 SXM5,L40S"     compares GPUs, the cheapest first

Nothing is run: datasheets, and published measurements (`tfmulti/planner`).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from tfmulti.errors import TfmultiError, UsageError
from tfmulti.planner.answer import SLOTS, answer, band
from tfmulti.planner.facts import PEAKS, Setup, Work, gpus, works
from tfmulti.planner.fit import learn, measurements
from tfmulti.units import bytes_text, count_text


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The flags; None: this process's.

    Returns:
        0, or 2 for wrong usage.
    """
    args = _parser().parse_args(argv)
    try:
        answers = plan(args)
    except TfmultiError as error:
        print(f"tfmulti: {error}", file=sys.stderr)
        return error.exit_code
    if args.json:
        print(json.dumps(answers, indent=2))
    else:
        print("\n\n".join(map(text, answers)))
    return 0


def plan(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Answers for every GPU that is asked about, the best first.

    The best is the cheapest of those that meet the deadline even at the slow
    end of the error band.
    """
    setups = [_setup(args, name) for name in args.gpu.split(",")]
    rows = measurements()
    knowledge = learn(rows)
    answers = [
        answer(
            setup,
            knowledge,
            band(rows, setup),
            units=args.units,
            price_per_gpu_hour=args.price_per_gpu_hour,
            optimizer=args.optimizer,
            zero1=args.zero1,
        )
        for setup in setups
    ]
    late = args.deadline_hours
    for said in answers:
        said["meets_deadline"] = late is None or said["hours_high"] <= late
    return sorted(
        answers,
        key=lambda a: (not a["meets_deadline"], a["cost"], a["hours"]),
    )


def text(said: dict[str, Any]) -> str:
    """Gives one answer as people read it."""
    state = ", ".join(
        f"{part} {bytes_text(size)}"
        for part, size in said["state_bytes"].items()
    )
    late = "" if said["meets_deadline"] else "; TOO LATE"
    fits = "" if said["state_fits"] else "; DOES NOT FIT"
    unit = said["unit"]
    return "\n".join([
        f"{said['model']} on {said['gpus']} x {said['gpu']}, "
        f"{said['hosts']} host(s), link: {said['link']}",
        f"  speed    {count_text(said['units_per_s'])} {unit}/s "
        f"({count_text(said['units_per_s_low'])} to "
        f"{count_text(said['units_per_s_high'])}: eight of ten of "
        f"{said['band_rows']} measurements left out)",
        f"  scaling  {said['efficiency']:.0%}; binds: {said['binds']}",
        f"  hours    {said['hours']:.3g} (up to {said['hours_high']:.3g}); "
        f"cost {said['cost']:.4g}{late}",
        f"  memory   {state}{fits}; activations are not counted",
        f"  a host   {said['host_memory_gb']:.0f} GB RAM, "
        f"{said['host_pcie_lanes']} PCIe lanes, "
        f"{said['host_power_w']:.0f} W of power and as much cooling",
        *(f"  source   {source}" for source in said["sources"]),
    ])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfmulti plan", description=(__doc__ or "").split("\n")[0]
    )
    add = parser.add_argument
    add("--model", default="resnet50", help="such as resnet50, bert-large")
    add("--input", default="", help='such as "seq 128", where it matters')
    add("--gpu", default="A100 SXM4 80GB", help="one, or several: A,B")
    add("--gpus", type=_positive, default=1, help="of all hosts together")
    add("--hosts", type=_positive, default=1)
    add("--intra", default="not stated", help='such as "NVLink bridge"')
    add("--network", default="none", help='such as "8x200Gb HDR"')
    add("--precision", choices=sorted(PEAKS), default="FP16")
    add("--replica_batch_size", type=_positive, default=128)
    add("--accumulation", type=_positive, default=1)
    add("--optimizer", choices=sorted(SLOTS), default="adam")
    add("--zero1", action="store_true", help="share the optimizer's state")
    add("--units", type=_positive, default=1_281_167,
        help="images, sequences or tokens to work off; default: ImageNet")
    add("--price_per_gpu_hour", type=float, default=0.0)
    add("--deadline_hours", type=float, help="those that meet it come first")
    add("--json", action="store_true", help="as JSON")
    return parser


def _positive(word: str) -> int:
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number over 0")
    return int(word)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _setup(args: argparse.Namespace, gpu: str) -> Setup:
    known = gpus()
    return Setup(
        gpu=known[_named("--gpu", gpu, known)],
        work=_work(args.model, args.input),
        precision=args.precision,
        gpus=args.gpus,
        hosts=args.hosts,
        intra=args.intra,
        inter=_network(args),
        replica_batch_size=args.replica_batch_size,
        accumulation=args.accumulation,
    )


def _network(args: argparse.Namespace) -> str:
    if args.hosts > 1 and not re.search(r"\d ?g", args.network.lower()):
        raise UsageError(
            received=f"--network {args.network!r} for {args.hosts} hosts",
            allowed="the cards of a host with their rate",
            remedy='Write --network "8x200Gb HDR" or "25 GbE TCP".',
        )
    return str(args.network)


def _work(model: str, data: str) -> Work:
    known = works()
    name = _named("--model", model, dict.fromkeys(w.model for w in known))
    found = [w for w in known if w.model == name and data in (w.input, "")]
    if not found:
        inputs = [w.input for w in known if w.model == name]
        raise UsageError(
            received=f"--input {data!r} for {name}",
            allowed=", ".join(filter(None, inputs)) or "no --input",
            remedy="Leave --input out for the first.",
        )
    return found[0]


def _named(flag: str, name: str, known: Iterable[str]) -> str:
    for candidate in known:
        if _plain(candidate) == _plain(name):
            return candidate
    raise UsageError(
        received=f"{flag} {name!r}",
        allowed=", ".join(known),
        remedy="Case, blanks and dashes do not matter.",
    )


if __name__ == "__main__":
    sys.exit(main())
