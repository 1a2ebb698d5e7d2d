"""A shuffled order that is computed, not drawn.

A shuffle buffer must be filled before it gives the right order, and its
state cannot be saved in a few bytes. Here the example at position 1 000 000
of epoch 7 is a function of (seed, epoch, position), the same on every
worker, and the only state of the input is a position.

    up to 65 536 examples   positions sorted by their hash, once an epoch
    more                    position --cipher--> value, below count? --> index
                                          ^                  | no
                                          +------------------+

A block cipher is a permutation of all numbers of `bits` bits; applying it
again until the result is below `count` makes it one of range(count), with no
memory (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
The cipher is Simon (eprint.iacr.org/2013/404) with eight rounds and the
word size that the count asks for: what TensorFlow's op `RandomIndexShuffle`
computes, so that the graph (`shuffle_op`) and this file, which needs NumPy
alone, give the same order. For small sets the op walks for long, 45 steps an
example with 1437, and the sorted list is faster.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

# The op's own default is four, its authors recommend eight.
ROUNDS = 8

# Up to as many examples an epoch's order is kept as a list.
SMALL = 65_536

# SplitMix64: the golden ratio's bits and the multipliers of its finaliser.
GOLDEN = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB

Key = tuple[int, int, int]

_MIN_BITS = 16
_KEY_CONSTANT = 0xFFFFFFFC
_KEY_SEQUENCE = 0x7369F885192C0EF5
_MASK_64 = (1 << 64) - 1


def mix(value: Any) -> Any:
    """Scatters 64 bits (the finaliser of SplitMix64, Steele et al. 2014).

    Args:
        value: An int below 2**64, or an array of uint64.
    """
    value = ((value ^ (value >> 30)) * MIX_1) & _MASK_64
    value = ((value ^ (value >> 27)) * MIX_2) & _MASK_64
    return value ^ (value >> 31)


def key_of(seed: int, epoch: int) -> Key:
    """Gives the three 32-bit key words of one epoch's order.

    The words are hashed because the cipher keeps only the low `bits` / 2
    bits of each: plain seeds 0 and 512 would be one order.
    """
    state = mix(mix((seed + GOLDEN) & _MASK_64) ^ (epoch & _MASK_64))
    first, second, third = (
        mix((state + word * GOLDEN) & _MASK_64) >> 32 for word in (1, 2, 3)
    )
    return first, second, third


def walk_limit(count: int) -> int:
    """Gives the size of the range that the cipher is asked to permute.

    It is `count` but for one case. The op sizes its blocks by
    ceil(log2(count - 1)), one bit too few when count - 1 is a power of four
    (65 537, 262 145, ...): it then maps two positions to one example. For
    those counts the range is one larger and the extra value walked over.
    """
    largest = count - 1
    power_of_two = largest > 0 and largest & (largest - 1) == 0
    exponent = largest.bit_length() - 1
    is_faulty = power_of_two and exponent >= _MIN_BITS and exponent % 2 == 0
    return count + 1 if is_faulty else count


def permute(positions: np.ndarray, count: int, key: Key) -> np.ndarray:
    """Gives the example index at each position.

    Args:
        positions: int64, each in [0, count).
        count: How many examples there are.
        key: From `key_of`.

    Returns:
        int64 of the same shape; over all positions each index occurs once.
    """
    positions = np.asarray(positions, np.int64)
    if count <= SMALL:
        return small_order(count, key)[positions]
    values = positions.astype(np.uint64)
    bits = _block_bits(walk_limit(count))
    pending = np.ones(values.shape, bool)
    while pending.any():
        values[pending] = _simon(values[pending], bits, key)
        pending = values >= count
    return values.astype(np.int64)


@lru_cache(maxsize=8)  # A pure function's memo: steps share an epoch's key.
def small_order(count: int, key: Key) -> np.ndarray:
    """Gives the whole order of a small set, int64 [count]."""
    hashes = mix(hash_inputs(count) + np.uint64(key[0] << 32 | key[1]))
    # Without the lowest bit, as the graph sorts signed numbers.
    order = np.argsort(hashes >> 1, kind="stable").astype(np.int64)
    order.setflags(write=False)
    return order


def hash_inputs(count: int) -> np.ndarray:
    """Gives well-spread numbers to hash, uint64 [count]."""
    return np.arange(count, dtype=np.uint64) * np.uint64(GOLDEN)


def _block_bits(limit: int) -> int:
    """Gives the even number of bits that hold every value below `limit`."""
    bits = (limit - 1).bit_length()
    return max(bits + bits % 2, _MIN_BITS)


def _simon(values: np.ndarray, bits: int, key: Key) -> np.ndarray:
    """Enciphers blocks of `bits` bits: a Feistel network, a key a round."""
    width = bits // 2
    left = values >> np.uint64(width)
    right = values & np.uint64((1 << width) - 1)
    for round_key in _round_keys(width, key):
        left, right = right, left ^ _mixed(right, width) ^ round_key
    # As many swaps as rounds, an even number: the halves are in place.
    return (left << np.uint64(width)) | right


def _mixed(half: np.ndarray, width: int) -> np.ndarray:
    """The round function: (half <<< 1 & half <<< 8) ^ half <<< 2."""
    one, eight, two = (_rotate_left(half, n, width) for n in (1, 8, 2))
    return (one & eight) ^ two


def _rotate_left(half: np.ndarray, by: int, width: int) -> np.ndarray:
    mask = np.uint64((1 << width) - 1)
    back = np.uint64(width - by)
    return ((half << np.uint64(by)) | (half >> back)) & mask


def _round_keys(width: int, key: Key) -> list[np.uint64]:
    """Expands three key words to a key for each round."""
    mask = (1 << width) - 1

    def rotate_right(word: int, by: int) -> int:
        return ((word >> by) | (word << (width - by))) & mask

    keys = [word & mask for word in key]
    for i in range(ROUNDS - len(keys)):
        bit = (_KEY_SEQUENCE & mask) >> i & 1
        last = rotate_right(keys[-1], 3) ^ rotate_right(keys[-1], 4)
        keys.append((_KEY_CONSTANT & mask) ^ bit ^ keys[-3] ^ last)
    return [np.uint64(word) for word in keys]
