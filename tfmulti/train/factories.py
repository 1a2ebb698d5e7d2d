"""From an experiment's model name to a model's configuration.

    Experiment.model         "convnet" --entry point--> tfmulti_models.convnet
    Experiment.model_config  {"filters": (16, 32)}  --+
    facts of the data        image_shape (8, 8, 1)  --+--> its Config(...)
                             num_classes 10         --+

Facts of the data fill the fields of the same name that the experiment leaves
open, so that one experiment trains on other data without being rewritten.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import metadata
from types import ModuleType
from typing import Any

from tfmulti.config import Experiment
from tfmulti.errors import UsageError

MODEL_GROUP = "tfmulti.models"


def load_factory(name: str) -> ModuleType:
    """Imports the model factory of this name.

    Raises:
        UsageError: No installed package offers it, or what it needs is not
            installed.
    """
    found = {p.name: p for p in metadata.entry_points(group=MODEL_GROUP)}
    if name not in found:
        raise UsageError(
            received=f"model={name}",
            allowed=", ".join(sorted(found)),
            remedy="Name one of these, or install the package that offers "
            f"{name} in its entry-point group {MODEL_GROUP}.",
        )
    try:
        return found[name].load()
    except ModuleNotFoundError as error:
        raise UsageError(
            received=f"model={name}, which needs the package {error.name}",
            allowed="models whose packages are installed",
            remedy="Install the models extra: pip install 'tfmulti[models]'.",
        ) from error


def make_config(
    factory: ModuleType, experiment: Experiment, facts: Mapping[str, Any]
) -> Any:
    """Makes the factory's configuration.

    Args:
        factory: What `load_factory` gave.
        experiment: Its `model_config` comes first.
        facts: What the data say of themselves: "image_shape", ...; a None is
            no fact.

    Raises:
        UsageError: An unknown field, a value that the factory refuses, or one
            that the data contradict.
    """
    fields = config_fields(factory)
    given = dict(experiment.model_config)
    unknown = sorted(given.keys() - fields)
    if unknown:
        raise UsageError(
            received=f"model_config field {unknown[0]!r} for "
            f"{experiment.model}",
            allowed=", ".join(sorted(fields)),
            remedy="Correct the field's name in the experiment.",
        )
    for name, fact in facts.items():
        if name not in fields or fact is None:
            continue
        if _plain(given.setdefault(name, fact)) != _plain(fact):
            raise UsageError(
                received=f"model_config {name}={given[name]!r}, but the "
                f"data {experiment.data!r} have {name}={fact!r}",
                allowed=f"{name}={fact!r}, or nothing: it is then taken "
                "from the data",
                remedy="Correct model_config or choose other --data.",
            )
    try:
        return factory.Config(**given)
    except ValueError as error:
        raise UsageError(
            received=f"model_config of {experiment.model}: {error}",
            allowed=f"what {factory.__name__}.Config allows",
            remedy="Correct the experiment's model_config.",
        ) from error


def config_fields(factory: ModuleType) -> frozenset[str]:
    """Gives the names of the fields that a factory's configuration has."""
    return frozenset(f.name for f in dataclasses.fields(factory.Config))


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
