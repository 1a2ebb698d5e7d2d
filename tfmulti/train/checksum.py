"""Are the weights the same everywhere? A checksum that can be seen.

Every worker prints sixteen hex digits over the bytes of all its weights, and
the workers compare a short checksum of each variable, so that a difference
is named:

    variable   replica 0   replica 1   replica 2
    kernel     9f3c...     9f3c...     9f3c...     equal
    bias       04d1...     04d1...     77aa...     <- named, with the replica

Copies within a process are compared too: MirroredStrategy keeps one for each
replica.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from tfmulti.errors import TfmultiError

DIGEST_BYTES = 8


def weights_sha256(model: keras.Model) -> str:
    """Gives 16 hex digits over all weights of this worker's first replica."""
    digest = hashlib.sha256()
    for variable in model.weights:
        digest.update(np.ascontiguousarray(_copies(variable)[0]).tobytes())
    return digest.hexdigest()[:16]


def check_weights_equal(
    model: keras.Model, strategy: tf.distribute.Strategy
) -> None:
    """Compares every weight over all replicas of all workers.

    Every worker must call this; it costs one collective.

    Raises:
        TfmultiError: A weight differs; the text names the first such weight
            and the replicas that differ from replica 0.
    """
    table = _digest_table(model, strategy)
    for column, variable in enumerate(model.weights):
        differ = np.flatnonzero(table[:, column] != table[0, column])
        if differ.size:
            raise TfmultiError(
                f"the replicas' weights are not equal: {variable.path} of "
                f"replica {', '.join(map(str, differ))} differs from replica "
                "0's. The run's model cannot be trusted."
            )


def _digest_table(
    model: keras.Model, strategy: tf.distribute.Strategy
) -> np.ndarray:
    """Gives int64 [replicas, variables], on every worker."""
    local = [_copies(variable) for variable in model.weights]
    replicas = max(len(copies) for copies in local)
    rows = [
        np.array([_digest(copies[r % len(copies)]) for copies in local])
        for r in range(replicas)
    ]
    if strategy.num_replicas_in_sync == replicas:
        return np.stack(rows)
    return _gather(rows, strategy)


def _gather(
    rows: Sequence[np.ndarray], strategy: tf.distribute.Strategy
) -> np.ndarray:
    per_replica = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(
            # Replica ids count over all workers, rows over this one's.
            rows[context.replica_id_in_sync_group % len(rows)][None, :],
            dtype=tf.int64,
        )
    )
    return strategy.gather(per_replica, axis=0).numpy()


def _copies(variable: keras.Variable) -> tuple[np.ndarray, ...]:
    """Gives the value of each of this worker's copies of a variable."""
    value = variable.value
    if not isinstance(value, tf.distribute.DistributedValues):
        return (value.numpy(),)
    strategy = value.distribute_strategy
    return tuple(v.numpy() for v in strategy.experimental_local_results(value))


def _digest(value: np.ndarray) -> int:
    data = np.ascontiguousarray(value).tobytes()
    digest = hashlib.sha256(data).digest()[:DIGEST_BYTES]
    return int.from_bytes(digest, "little", signed=True)
