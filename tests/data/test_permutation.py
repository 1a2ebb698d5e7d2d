"""The permutation: a bijection, the one of the op, and well scattered."""

from __future__ import annotations

import numpy as np
import pytest

from tfmulti.data.permutation import key_of, permute

# 4**8 + 1 and 4**9 + 1 are among the counts that the op gets wrong.
COUNTS = (1, 2, 3, 7, 64, 1000, 65_536, 65_537, 65_538, 100_003, 262_145)


@pytest.mark.parametrize("count", COUNTS)
def test_each_example_has_one_position(count):
    order = permute(np.arange(count), count, key_of(3, 5))
    assert order.dtype == np.int64
    np.testing.assert_array_equal(np.sort(order), np.arange(count))


def test_large_sets_are_permuted_without_a_table():
    count = 3 * 10**12
    positions = np.arange(10**11, 10**11 + 1000)
    found = permute(positions, count, key_of(0, 0))
    assert len(np.unique(found)) == 1000
    assert found.min() >= 0 and found.max() < count


@pytest.mark.parametrize("seeds", [(0, 1), (0, 256), (0, 2**32), (-1, 1)])
def test_seeds_and_epochs_give_orders_of_their_own(seeds):
    positions = np.arange(1000)
    orders = [permute(positions, 1000, key_of(seed, 0)) for seed in seeds]
    orders += [permute(positions, 1000, key_of(0, epoch)) for epoch in (1, 256)]
    same = [
        np.mean(a == b)
        for i, a in enumerate(orders)
        for b in orders[:i]
        if not np.array_equal(a, b)
    ]
    # Two independent orders agree at one position in a thousand.
    assert len(same) == len(orders) * (len(orders) - 1) // 2
    assert max(same) < 0.02


@pytest.mark.parametrize("count", [10, 1437])
def test_positions_are_uniform_over_epochs(count):
    """Over many epochs each example comes first equally often."""
    epochs = 500
    first = np.array(
        [permute(np.array([0]), count, key_of(1, e))[0] for e in range(epochs)]
    )
    tenths = np.bincount(first * 10 // count, minlength=10)
    expected = epochs / 10
    chi_square = ((tenths - expected) ** 2 / expected).sum()
    assert chi_square < 27.9  # 9 degrees of freedom, p = 0.001


def test_neighbours_are_scattered():
    order = permute(np.arange(1437), 1437, key_of(0, 0)).astype(float)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.1
    assert abs(np.corrcoef(np.arange(1437), order)[0, 1]) < 0.1
