"""Sources made of sources: a part, a repetition, a mixture by weight.

Each is a source itself, a rule from numbers to numbers, so that order,
position and exactly-once hold for it as for any other:

    Take      i -> i
    Repeat    i -> i % len(source)
    Mixture   i -> (which source, number in it)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfmulti.data.source import (
    Source,
    cpu_constant,
    digest,
    fetch_marked,
    names_of,
)
from tfmulti.errors import UsageError


class Take:
    """The first examples of a source.

    Args:
        source: The source.
        count: How many, from 1 to all.

    Raises:
        UsageError: The source holds fewer.
    """

    def __init__(self, source: Source, count: int):
        if not 1 <= count <= len(source):
            raise UsageError(
                received=f"take {count} of {len(source)} examples",
                allowed=f"a whole number from 1 to {len(source)}",
                remedy="Take fewer examples, or repeat the source.",
            )
        self._source = source
        self._count = count
        self.element_spec = source.element_spec
        self.fingerprint = digest([source.fingerprint, f"take {count}"])

    def __len__(self) -> int:
        return self._count

    def fetch(self, indices: tf.Tensor) -> Any:
        """Gives the examples with these numbers."""
        return self._source.fetch(indices)

    def fetch_marked(self, indices: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """As `fetch`; zeros for damaged examples."""
        return fetch_marked(self._source, indices)

    def names(self, indices: tf.Tensor) -> tf.Tensor:
        """Names examples by file and place."""
        return names_of(self._source, indices)


class Repeat:
    """A source whose examples come several times in each epoch.

    Args:
        source: The source.
        times: How often, from 1.

    Raises:
        UsageError: `times` is below 1.
    """

    def __init__(self, source: Source, times: int):
        if times < 1:
            raise UsageError(
                received=f"repeat {times} times",
                allowed="a whole number from 1",
                remedy="Repeat once or more.",
            )
        self._source = source
        self._times = times
        self.element_spec = source.element_spec
        self.fingerprint = digest([source.fingerprint, f"repeat {times}"])

    def __len__(self) -> int:
        return len(self._source) * self._times

    def fetch(self, indices: tf.Tensor) -> Any:
        """Gives the examples with these numbers."""
        return self._source.fetch(indices % len(self._source))

    def fetch_marked(self, indices: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """As `fetch`; zeros for damaged examples."""
        return fetch_marked(self._source, indices % len(self._source))

    def names(self, indices: tf.Tensor) -> tf.Tensor:
        """Names examples by file and place."""
        return names_of(self._source, indices % len(self._source))


class Mixture:
    """Several sources in fixed proportions.

    An epoch is as short as it can be with every example of every source in
    it: the source that is largest for its weight comes once, the others are
    repeated until their share is filled. Sources lie one after the other;
    it is the shuffled order that mixes them.

    Args:
        sources: Sources of examples that look alike.
        weights: The share of each, in any unit, above zero.

    Raises:
        UsageError: There is not one weight above zero for each source, or
            their examples do not look alike.
    """

    def __init__(self, sources: Sequence[Source], weights: Sequence[float]):
        _check_mixture(sources, weights)
        self._sources = tuple(sources)
        counts = _shares([len(source) for source in sources], weights)
        bounds = np.cumsum([0, *counts])
        self._length = int(bounds[-1])
        self._starts = bounds[:-1].tolist()
        self._bounds = cpu_constant(bounds[1:], tf.int64)
        self.element_spec = sources[0].element_spec
        self.fingerprint = digest(
            f"{source.fingerprint} {count}"
            for source, count in zip(sources, counts, strict=True)
        )

    def __len__(self) -> int:
        return self._length

    def fetch(self, indices: tf.Tensor) -> Any:
        """Gives the examples with these numbers."""
        return self._stitched(indices, lambda source, i: source.fetch(i))

    def fetch_marked(self, indices: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """As `fetch`; zeros for damaged examples."""
        return self._stitched(indices, fetch_marked)

    def names(self, indices: tf.Tensor) -> tf.Tensor:
        """Names examples by file and place."""
        return self._stitched(indices, names_of)

    def _stitched(
        self, indices: tf.Tensor, ask: Callable[[Source, tf.Tensor], Any]
    ) -> Any:
        """Asks each source for its rows and puts the answers in place."""
        chosen = tf.searchsorted(self._bounds, indices, side="right")
        places, answers = [], []
        for number, source in enumerate(self._sources):
            rows = tf.where(tf.equal(chosen, number))[:, 0]
            inside = tf.gather(indices, rows) - self._starts[number]
            answers.append(ask(source, inside % len(source)))
            places.append(tf.cast(rows, tf.int32))
        return tf.nest.map_structure(
            lambda *parts: tf.dynamic_stitch(places, parts), *answers
        )


def _shares(lengths: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Gives how many examples of each source an epoch holds."""
    scale = max(n / w for n, w in zip(lengths, weights, strict=True))
    # A product that ought to be whole may lie a little beside it.
    return [
        max(n, math.floor(scale * w + 0.5))
        for n, w in zip(lengths, weights, strict=True)
    ]


def _check_mixture(
    sources: Sequence[Source], weights: Sequence[float]
) -> None:
    fit = len(sources) == len(weights) > 0
    if not fit or not all(0 < weight < math.inf for weight in weights):
        raise UsageError(
            received=f"{len(sources)} sources with the weights "
            f"{list(weights)}",
            allowed="one weight above zero for each source, at least one",
            remedy="Leave out sources that should not be read.",
        )
    for source in sources[1:]:
        if source.element_spec != sources[0].element_spec:
            raise UsageError(
                received=f"a mixture of examples {sources[0].element_spec} "
                f"and {source.element_spec}",
                allowed="examples of the same structure, shapes and types",
                remedy="Load both with the same image size or context.",
            )
