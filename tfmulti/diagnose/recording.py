"""A recording of a machine: what its files and programs said, as text.

One text file, in the form in which `head` and `tail` print several files. A
program's output has its command line as its name:

    ==> /proc/meminfo <==
    MemTotal:       1056270788 kB

    ==> $ nvidia-smi topo -m <==
            GPU0    GPU1    CPU Affinity    NUMA Affinity
    ...

What is missing on the machine is missing here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tfmulti.hardware import host, smi_query, topology

Recording = Mapping[str, str]

PROBE = "tensorflow_build"
PROBE_SECTION = f"$ python -m tfmulti.probes.{PROBE}"
ENVIRONMENT = "environment"
ENVIRONMENT_NAMES = ("CUDA_VISIBLE_DEVICES",)

COMMANDS: tuple[tuple[str, ...], ...] = (
    smi_query.COMMAND,
    topology.PATHS_COMMAND,
    topology.PEERS_COMMAND,
    topology.NVLINK_COMMAND,
    host.SHM_COMMAND,
    host.CLOCK_COMMAND,
    host.NICS_COMMAND,
    host.LSPCI_COMMAND,
)

# Of these long files one line is read, and so kept.
_OF_INTEREST = {
    "/proc/cpuinfo": r"^flags\s.*$",
    "/proc/meminfo": r"^MemTotal:.*$",
    "/proc/self/status": r"^Cpus_allowed_list:.*$",
}

_HEADER = re.compile(r"^==> (.*) <==$", re.MULTILINE)


def section(command: Sequence[str]) -> str:
    """Gives the name under which a command's output is kept."""
    return f"$ {' '.join(command)}"


def gather(
    *,
    read: Callable[[str], str | None],
    run: Callable[[Sequence[str]], str | None],
    probe: Callable[[], str | None],
    env: Mapping[str, str],
) -> Recording:
    """Records this machine.

    Args:
        read: Gives the text of a file, or None where it cannot be read.
        run: Gives what a program prints, or None where there is none.
        probe: Gives what the probe of TensorFlow prints, or None.
        env: The environment of this process.
    """
    found: dict[str, str | None] = {}

    def remember(path: str) -> str | None:
        text = read(path)
        if text and path in _OF_INTEREST:
            text = "\n".join(re.findall(_OF_INTEREST[path], text, re.M)[:1])
        found[path] = text
        return text

    # Whatever the reader of the host asks for is what must be kept.
    host.parse_host(remember, lambda command: None)
    for command in COMMANDS:
        found[section(command)] = run(command)
    found[PROBE_SECTION] = probe()
    lines = [f"{n}={env[n]}" for n in ENVIRONMENT_NAMES if n in env]
    found[ENVIRONMENT] = "\n".join(lines)
    return {name: text for name, text in found.items() if text}


def dump(recording: Recording) -> str:
    """Writes a recording as one text."""
    return "\n".join(
        f"==> {name} <==\n{text.rstrip()}\n"
        for name, text in recording.items()
    )


def load(text: str) -> Recording:
    """Reads what `dump` wrote.

    Raises:
        ValueError: It has no section.
    """
    parts = _HEADER.split(text)
    if len(parts) < 3:
        raise ValueError("no line '==> NAME <==' in it")
    return {
        name: body.strip("\n") + "\n"
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }
