"""The recorded machines, with the changes that make them faulty."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tfmulti.diagnose import Recording, load

FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Case:
    """A machine and the findings, as (code, severity, subject)."""

    name: str
    recording: Recording
    expected: list[tuple[str, str, str]]


def cases() -> list[Case]:
    """Reads machines.json and applies its changes."""
    listed = json.loads((FOLDER / "machines.json").read_text())
    return [
        Case(
            name=entry["name"],
            recording=changed(base(entry["recording"]), entry["edits"]),
            expected=[tuple(finding) for finding in entry["expected"]],
        )
        for entry in listed
    ]


def base(name: str) -> Recording:
    """Reads a recording by its name."""
    return load((FOLDER / "machines" / f"{name}.txt").read_text())


def changed(
    recording: Recording, edits: list[Mapping[str, Any]]
) -> Recording:
    """Applies changes, each of which must find what it changes.

    A change has a section and either a "path" and "value" in nvidia-smi's
    XML (of one "gpu" or all), "old" and "new" text, a whole "text", or
    nothing, which removes the section.
    """
    result = dict(recording)
    for edit in edits:
        section = edit["section"]
        if "path" in edit:
            result[section] = _set_tag(result[section], edit)
        elif "old" in edit:
            assert edit["old"] in result[section], edit
            result[section] = result[section].replace(
                edit["old"], edit["new"]
            )
        elif "text" in edit:
            result[section] = edit["text"]
        else:
            del result[section]
    return result


def _set_tag(xml: str, edit: Mapping[str, Any]) -> str:
    root = ElementTree.fromstring(xml)
    gpus = root.findall("gpu")
    for gpu in gpus if "gpu" not in edit else [gpus[edit["gpu"]]]:
        tag = gpu.find(edit["path"])
        assert tag is not None, edit
        tag.text = edit["value"]
    return ElementTree.tostring(root, encoding="unicode")
