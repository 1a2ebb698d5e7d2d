"""How far a result is from the right one.

The difference of two arrays is measured against the largest entry of the
right one, so that a weight near zero counts as part of its matrix. NaN and
infinity must stand at the same places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.equivalence.program import Arrays
from tests.equivalence.runner import Outcome

# An array of which all entries are smaller is compared as if one was so large.
SMALLEST_SCALE = 1e-3


@dataclass(frozen=True, kw_only=True)
class Distance:
    """The entry that is furthest from what is right.

    Attributes:
        error: Its relative error; infinity if it cannot be compared.
        where: Its name.
    """

    error: float
    where: str


def judge(right: Outcome, got: Outcome) -> Distance:
    """Compares each worker's result with that of one device."""
    for outcome, where in ((right, "on one device"), (got, "")):
        if outcome.failure:
            return Distance(
                error=float("inf"), where=f"fails {where}\n{outcome.failure}"
            )
    found = [distance(right.results[0], arrays) for arrays in got.results]
    return max(found, key=lambda d: d.error)


def distance(right: Arrays, got: Arrays) -> Distance:
    """Gives the largest relative error over all arrays."""
    if right.keys() != got.keys():
        names = sorted(right.keys() ^ got.keys())
        return Distance(error=float("inf"), where=f"only one has {names}")
    found = [
        Distance(error=relative_error(right[name], got[name]), where=name)
        for name in right
    ]
    return max(found, key=lambda d: d.error)


def relative_error(right: np.ndarray, got: np.ndarray) -> float:
    """Gives max |got - right| / max |right|."""
    if right.shape != got.shape:
        return float("inf")
    if right.dtype.kind not in "biuf" or got.dtype.kind not in "biuf":
        return 0.0 if np.array_equal(right, got) else float("inf")
    right, got = right.astype("float64"), got.astype("float64")
    finite = np.isfinite(right)
    if not np.array_equal(right[~finite], got[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = max(float(np.abs(right[finite]).max()), SMALLEST_SCALE)
    error = float(np.abs(right[finite] - got[finite]).max()) / scale
    return float("inf") if np.isnan(error) else error
