"""Small and real configurations of every factory, for the shared tests."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

FACTORIES = ("convnet", "resnet", "transformer_lm", "vit", "dcgan", "wgan_gp")
ADVERSARIAL = ("dcgan", "wgan_gp")

SMALL: dict[str, list[dict[str, Any]]] = {
    "convnet": [
        {},
        {"filters": (8,), "depth": 1, "dense": 0, "batch_norm": False},
        {"image_shape": (28, 20, 3), "filters": (4, 8, 16), "kernel": 5},
    ],
    "resnet": [
        {"depth": 20, "form": "cifar", "image_shape": (32, 32, 3)},
        {"depth": 18, "form": "cifar", "image_shape": (16, 12, 1)},
        {"depth": 50, "form": "cifar", "image_shape": (8, 8, 3)},
        {"depth": 18, "image_shape": (64, 64, 3), "num_classes": 10},
        {"depth": 50, "image_shape": (65, 33, 3), "num_classes": 10},
    ],
    "transformer_lm": [
        {"context_length": 16, "layers": 2, "width": 32},
        {
            "context_length": 8,
            "layers": 1,
            "width": 24,
            "heads": 3,
            "mlp_width": 40,
            "vocabulary_size": 50,
            "tied": False,
        },
    ],
    "vit": [
        {"depth": 2},
        {"depth": 1, "pool": "token", "patch": 4, "mlp_width": 50},
        {"image_shape": (12, 8, 3), "patch": 4, "width": 24, "heads": 2},
    ],
    "dcgan": [
        {"image_shape": (8, 8, 1), "width": 8, "levels": 2},
        {"image_shape": (28, 28, 3), "width": 4, "num_classes": 3},
        {
            "image_shape": (16, 32, 1),
            "width": 4,
            "discriminator_norm": "none",
        },
    ],
    "wgan_gp": [
        {"image_shape": (8, 8, 1), "width": 8, "critic_updates": 2},
        {"image_shape": (16, 16, 3), "width": 4, "num_classes": 3},
    ],
}


@dataclass(frozen=True)
class Case:
    """A factory and one configuration of it."""

    name: str
    module: ModuleType
    config: Any

    def input_spec(self, batch: int) -> tuple[tuple[int, ...], str]:
        """Shape and dtype of a batch of the model's inputs."""
        if self.name == "transformer_lm":
            return (batch, self.config.context_length), "int32"
        return (batch, *self.config.image_shape), "float32"


def case(name: str, **settings: Any) -> Case:
    """Gives one case by the factory's name and its settings."""
    module = importlib.import_module(f"tfmulti_models.{name}")
    return Case(name, module, module.Config(**settings))


def first(name: str) -> Case:
    """Gives a factory's first small case."""
    return case(name, **SMALL[name][0])


def small_cases(names: tuple[str, ...] = FACTORIES) -> Iterator[Case]:
    """Gives every small case of these factories."""
    for name in names:
        for settings in SMALL[name]:
            yield case(name, **settings)


def identifier(value: Any) -> str:
    """Names a case in pytest's output."""
    return value.name if isinstance(value, Case) else str(value)
