"""Findings and facts, as text for people and JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from tfmulti.diagnose.findings import SEVERITIES, Finding, gpu_names
from tfmulti.diagnose.layout import near_nics, numa_groups, switch_groups
from tfmulti.diagnose.machine import Machine
from tfmulti.hardware.smi_query import GpuState
from tfmulti.units import bytes_text

WIDTH = 78


def as_text(machine: Machine, findings: Sequence[Finding]) -> str:
    """Writes facts, findings and a verdict."""
    lines = [
        line for name, what in facts(machine) for line in _fact(name, what)
    ]
    for finding in findings:
        lines += ["", *_finding(finding)]
    return "\n".join([*lines, "", verdict(findings)])


def as_json(machine: Machine, findings: Sequence[Finding]) -> str:
    """Writes the same as one JSON object."""
    return json.dumps(
        {
            "verdict": verdict(findings),
            "findings": [dataclasses.asdict(f) for f in findings],
            "facts": dict(facts(machine)),
            "gpus": [dataclasses.asdict(gpu) for gpu in machine.gpus],
            "host": dataclasses.asdict(machine.host),
            "software": dataclasses.asdict(machine.software),
        },
        indent=2,
    )


def verdict(findings: Sequence[Finding]) -> str:
    """Counts the findings: "1 error, 2 warnings, 1 note"."""
    counts = [
        (severity, sum(f.severity == severity for f in findings))
        for severity in SEVERITIES
    ]
    named = [
        f"{count} {severity}{'s' if count > 1 else ''}"
        for severity, count in counts
        if count
    ]
    return ", ".join(named) if named else "Nothing wrong was found."


def facts(machine: Machine) -> Iterator[tuple[str, str]]:
    """Lists what the machine is, in (name, value)."""
    if machine.driver_version:
        yield (
            "driver",
            f"{machine.driver_version}, for CUDA {machine.cuda_version} and "
            "older",
        )
    yield from _software(machine)
    for what, indices in _alike(
        (_gpu(machine, gpu), gpu.index) for gpu in machine.gpus
    ):
        yield gpu_names(indices), what
    yield from _layout(machine)
    yield "host", _host(machine)


def _fact(name: str, what: str) -> list[str]:
    return textwrap.wrap(
        f"{name:12}{what}",
        WIDTH,
        subsequent_indent=" " * 12,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _alike(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    """Groups numbers by an equal text, in the order of the texts."""
    groups: dict[str, list[int]] = {}
    for text, number in pairs:
        groups.setdefault(text, []).append(number)
    return list(groups.items())


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity.upper()}: {finding.subject} [{finding.code}]"
    for text in (finding.evidence, f"-> {finding.remedy}"):
        yield from textwrap.wrap(
            text,
            WIDTH,
            initial_indent="    ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _software(machine: Machine) -> Iterator[tuple[str, str]]:
    software = machine.software
    if software.tensorflow is None:
        return
    build = (
        f"built with CUDA {software.cuda} and cuDNN {software.cudnn}"
        if software.cuda_build
        else "built without CUDA"
    )
    yield (
        "TensorFlow",
        f"{software.tensorflow}, {build}; finds {software.gpus} GPU(s)",
    )
    yield "Keras", str(software.keras)
    found = [
        f"{name} {library.found or 'not found'}"
        for name, library in software.libraries.items()
    ]
    if machine.gpus and found:
        yield "libraries", ", ".join(found)


def _gpu(machine: Machine, gpu: GpuState) -> str:
    words = [gpu.name]
    if gpu.memory_bytes is not None:
        words.append(bytes_text(gpu.memory_bytes))
    if gpu.pcie_width is not None:
        words.append(f"PCIe {gpu.pcie_generation}.0 x{gpu.pcie_width}")
    links = [len(n.up) for n in machine.nvlinks if n.gpu == gpu.index]
    if links:
        words.append(f"{links[0]} NVLinks")
    if gpu.power_limit_w is not None:
        words.append(f"{gpu.power_limit_w:g} W")
    return ", ".join(words)


def _layout(machine: Machine) -> Iterator[tuple[str, str]]:
    if machine.paths is None or len(machine.gpus) < 2:
        return
    shared = switch_groups(machine.paths)
    if shared:
        yield "one switch", "; ".join(map(gpu_names, shared))
    numa = numa_groups(machine.paths)
    if numa:
        yield (
            "NUMA nodes",
            "; ".join(f"{n}: {gpu_names(g)}" for n, g in numa.items()),
        )
    nics = near_nics(machine.paths)
    if nics:
        yield (
            "near NICs",
            "; ".join(
                f"{gpu_names(gpus)}: {names}"
                for names, gpus in _alike(
                    (", ".join(names), gpu) for gpu, names in nics.items()
                )
            ),
        )


def _host(machine: Machine) -> str:
    host = machine.host
    words = []
    if host.cores is not None:
        words.append(f"{host.cores.usable} usable cores")
    if host.memory_bytes is not None:
        words.append(f"{bytes_text(host.memory_bytes)} of memory")
    if host.shm_bytes is not None:
        words.append(f"/dev/shm {bytes_text(host.shm_bytes)}")
    if host.infiniband:
        words.append(f"InfiniBand or RoCE: {', '.join(host.infiniband)}")
    return ", ".join(words) or "not known"
