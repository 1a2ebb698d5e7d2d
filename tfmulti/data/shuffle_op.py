"""The order of `permutation`, computed in a TensorFlow graph.

The raw op is used, not `tf.random.experimental.index_shuffle`: that one
fixes four rounds, and it shares the op's fault for 65 537 examples and its
kind (`permutation.walk_limit` says what is wrong), which is mended here.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfmulti.data import permutation
from tfmulti.data.order import Order


def epoch_state(order: Order, epoch: tf.Tensor) -> tf.Tensor:
    """Gives what `shuffled` needs to know of an epoch, once for all steps.

    Args:
        order: The order.
        epoch: int64 [], not negative.

    Returns:
        The key, uint32 [3], or for a small set the list, int64 [count].
    """
    state = _epoch_bits(order.seed, epoch)
    if not order.shuffle or order.example_count > permutation.SMALL:
        return _key(state)
    key = tf.cast(_key(state), tf.uint64)
    start = tf.bitwise.left_shift(key[0], _uint64(32)) + key[1]
    hashes = _mix(start + permutation.hash_inputs(order.example_count))
    signed = tf.cast(tf.bitwise.right_shift(hashes, _uint64(1)), tf.int64)
    return tf.cast(tf.argsort(signed, stable=True), tf.int64)


def shuffled(positions: tf.Tensor, state: tf.Tensor, order: Order) -> tf.Tensor:
    """Gives the example index at each position of an epoch.

    Args:
        positions: int64 [rows], each in [0, order.example_count).
        state: From `epoch_state`.
        order: The order.

    Returns:
        int64 [rows].
    """
    count = order.example_count
    if not order.shuffle:
        return positions
    if count <= permutation.SMALL:
        return tf.gather(state, positions)
    limit = permutation.walk_limit(count)
    indices = _index_shuffle(positions, state, limit)
    if limit != count:
        # One value is too many: whoever meets it walks on from there.
        onward = _index_shuffle(tf.constant([count], tf.int64), state, limit)
        indices = tf.where(indices == count, onward, indices)
    return tf.ensure_shape(indices, positions.shape)


def _epoch_bits(seed: int, epoch: tf.Tensor) -> tf.Tensor:
    """The 64 bits that `permutation.key_of` makes its words from."""
    mixed_seed = permutation.mix((seed + permutation.GOLDEN) % 2**64)
    return _mix(_uint64(mixed_seed) ^ tf.cast(epoch, tf.uint64))


def _key(state: tf.Tensor) -> tf.Tensor:
    """`permutation.key_of` as uint32 [3]."""
    # Through NumPy: as a list, mixed sizes would pass through float64.
    words = np.array(
        [permutation.GOLDEN * word % 2**64 for word in (1, 2, 3)], np.uint64
    )
    high = tf.bitwise.right_shift(_mix(state + words), _uint64(32))
    return tf.cast(high, tf.uint32)


def _index_shuffle(
    positions: tf.Tensor, key: tf.Tensor, limit: int
) -> tf.Tensor:
    return tf.raw_ops.RandomIndexShuffle(
        index=positions,
        seed=key,
        max_index=tf.constant(limit - 1, tf.int64),
        rounds=permutation.ROUNDS,
    )


def _mix(value: tf.Tensor) -> tf.Tensor:
    """`permutation.mix` on uint64 tensors, which wrap as it masks."""
    shift = tf.bitwise.right_shift
    value = (value ^ shift(value, _uint64(30))) * _uint64(permutation.MIX_1)
    value = (value ^ shift(value, _uint64(27))) * _uint64(permutation.MIX_2)
    return value ^ shift(value, _uint64(31))


def _uint64(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint64)
