"""The NCCL variables to put into a worker's environment.

NCCL reads its variables once, so they must be there before TensorFlow starts:
the launcher adds them to the child's environment. What the person has set
already always wins; where the two differ, a note names both values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tfmulti.communication.nccl_table import SETTINGS, Setting
from tfmulti.communication.record import Communication


@dataclass(frozen=True, kw_only=True)
class ExportedEnvironment:
    """What to add to an environment, and what to tell the person.

    Attributes:
        variables: Variables to add; none of them is set already.
        notes: One sentence for each setting that the environment overrides.
    """

    variables: Mapping[str, str]
    notes: tuple[str, ...]


def environment(
    communication: Communication, env: Mapping[str, str]
) -> ExportedEnvironment:
    """Says which NCCL variables to add to `env`.

    Args:
        communication: The settings that were asked for.
        env: The environment that the person's own settings are in.
    """
    wanted = communication.effective_nccl().variables()
    variables, notes = {}, []
    for setting in SETTINGS:
        if setting.variable not in wanted:
            continue
        value = wanted[setting.variable]
        name = _already_set(setting, env)
        if name is None:
            variables[setting.variable] = value
        elif env[name] != value:
            notes.append(
                f"{name}={env[name]} is set in the environment and is kept; "
                f"{setting.field}={value} from "
                f"{_origin(communication, setting)} is not used."
            )
    return ExportedEnvironment(variables=variables, notes=tuple(notes))


def _already_set(setting: Setting, env: Mapping[str, str]) -> str | None:
    for name in (setting.variable, *setting.aliases):
        if name in env:
            return name
    return None


def _origin(communication: Communication, setting: Setting) -> str:
    if setting.field in communication.nccl.given():
        return "the NCCL settings"
    return f"the preset {communication.nccl_preset}"
