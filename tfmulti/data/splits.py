"""What training asks of data, and what it gets.

A task says what an example is:

    classification   (image, label)     float32 [h, w, c] in 0 .. 1, int32 []
    gan              image              float32 [h, w, c] in -1 .. 1
    language_model   (input, target)    int32 [context], the target one ahead
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfmulti.data.permutation import key_of, permute
from tfmulti.data.source import Source
from tfmulti.errors import UsageError

TASKS = ("classification", "language_model", "gan")
BYTE_VALUES = 256
DEFAULT_CONTEXT = 128


@dataclass(frozen=True, kw_only=True)
class DataInfo:
    """What a model and a reader want to know of a data set.

    Attributes:
        description: One line for people.
        licence: Under which it may be used; "" where the user knows.
        num_classes: Classes of the labels; None without labels.
        class_names: Their names, or ().
        image_shape: (height, width, channels), or None for text.
        pixel_range: Values of a black and of a white pixel.
        vocabulary_size: Tokens are below it; None for images.
        context: Tokens in an input; None for images.
    """

    description: str
    licence: str = ""
    num_classes: int | None = None
    class_names: tuple[str, ...] = ()
    image_shape: tuple[int, int, int] | None = None
    pixel_range: tuple[float, float] = (0.0, 1.0)
    vocabulary_size: int | None = None
    context: int | None = None


@dataclass(frozen=True, kw_only=True)
class DataSplits:
    """A data set as training uses it.

    Attributes:
        train: Examples to learn from.
        validation: Held-out examples, or None where there are too few.
        info: Facts of the examples.
    """

    train: Source
    validation: Source | None
    info: DataInfo


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the model asks of its examples; None leaves it to the data.

    Attributes:
        task: One of `TASKS`.
        image_shape: (height, width, channels).
        num_classes: Classes that the model tells apart.
        context: Tokens in an input.
        vocabulary_size: Tokens that the model knows.
        seed: Seed of made-up examples; real data do not depend on it.
    """

    task: str
    image_shape: tuple[int, int, int] | None = None
    num_classes: int | None = None
    context: int | None = None
    vocabulary_size: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise UsageError(
                received=f"task={self.task}",
                allowed=", ".join(TASKS),
                remedy="Choose one of these tasks.",
            )

    @property
    def pixel_range(self) -> tuple[float, float]:
        """Values of a black and of a white pixel."""
        return (-1.0, 1.0) if self.task == "gan" else (0.0, 1.0)

    @property
    def with_labels(self) -> bool:
        """Whether an example of an image has its label with it."""
        return self.task == "classification"

    @property
    def context_or_default(self) -> int:
        """Tokens in an input."""
        return self.context or DEFAULT_CONTEXT


def held_out(count: int, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """Divides examples into those to learn from and those held out.

    The division depends on the count alone, not on the run's seed, so that a
    run can be resumed and two runs compared.

    Args:
        count: How many examples there are.
        fraction: Share to hold out; at least one example, if there are two.

    Returns:
        Example numbers of both parts, int64, each sorted.
    """
    order = permute(np.arange(count), count, key_of(0, 0))
    size = min(max(1, int(count * fraction)), count - 1)
    return np.sort(order[size:]), np.sort(order[:size])
