"""Workers agree: small values that every worker sees of every other.

    worker 0   [3, 0]  ─┐                 [[3, 0],
    worker 1   [3, 1]  ─┴─ one sum ───►    [3, 1]]   on both

Each worker puts its numbers into a row of its own and the rows are summed
over the job, so that everybody ends with the same table and decides alike
from it. Whatever is sent travels as 64-bit integers, which sums with zeros
leave exact. Every worker must call at the same point; with one worker nothing
is sent.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfmulti.errors import UsageError

PATIENCE_S = 30.0


def workers(strategy: Any) -> int:
    """Gives the number of workers that a strategy's job has."""
    return int(getattr(strategy.extended, "_num_workers", 1))


def worker(strategy: Any) -> int:
    """Gives this worker's number; the chief is 0."""
    return int(getattr(strategy.extended, "_id_in_cluster", 0) or 0)


def several(strategy: Any) -> bool:
    """Whether there is anybody to agree with."""
    return workers(strategy) > 1


def gather_numbers(
    strategy: Any, numbers: Sequence[int] | np.ndarray, what: str
) -> np.ndarray:
    """Gives every worker's numbers, in one collective.

    Args:
        strategy: The strategy of the job.
        numbers: 64-bit integers, as many on every worker.
        what: What is agreed on, for the line that is said when others do not
            come ("the end of an epoch").

    Returns:
        An int64 array [workers, len(numbers)].
    """
    mine = np.asarray(numbers, np.int64).reshape(-1)
    if not several(strategy):
        return mine[None]
    table = np.zeros((workers(strategy), mine.size), np.int64)
    table[worker(strategy)] = mine
    with _patience(strategy, what):
        total = _sum(strategy)(tf.constant(table.reshape(-1)))
        return np.asarray(total).reshape(table.shape)


def gather(strategy: Any, value: Any, what: str) -> list[Any]:
    """Gives every worker's value, in the order of the workers.

    Args:
        strategy: The strategy of the job.
        value: Anything that JSON can hold.
        what: What is agreed on; must be equal on all workers.

    Raises:
        UsageError: Another worker agrees on something else, on all alike.
    """
    if not several(strategy):
        return [value]
    text = json.dumps([what, value]).encode()
    sizes = gather_numbers(strategy, [len(text)], what)[:, 0]
    padded = text.ljust(-(-int(sizes.max()) // 8) * 8)
    rows = gather_numbers(strategy, np.frombuffer(padded, np.int64), what)
    found = [json.loads(row.tobytes().decode()) for row in rows]
    _same_place([place for place, _ in found])
    return [each for _, each in found]


def from_chief(strategy: Any, value: Any, what: str = "a value") -> Any:
    """Gives the chief's value on every worker."""
    return gather(strategy, value, what)[0]


def any_true(strategy: Any, flag: bool, what: str = "a decision") -> bool:
    """Whether the flag is set on any worker."""
    return bool(gather_numbers(strategy, [int(flag)], what).any())


def all_equal(
    strategy: Any, numbers: Sequence[int], what: str = "a check"
) -> bool:
    """Whether all workers have the same numbers."""
    table = gather_numbers(strategy, numbers, what)
    return bool((table == table[:1]).all())


def barrier(strategy: Any, what: str) -> None:
    """Returns when every worker has come here."""
    gather_numbers(strategy, [0], what)


def _sum(strategy: Any) -> Callable[[tf.Tensor], tf.Tensor]:
    """Gives the job's sum of each worker's vector; kept on the strategy."""
    kept = strategy.__dict__.get("_tfmulti_sum")
    if kept is None:
        kept = _make_sum(strategy)
        object.__setattr__(strategy, "_tfmulti_sum", kept)
    return kept


def _make_sum(strategy: Any) -> Callable[[tf.Tensor], tf.Tensor]:
    first = worker(strategy) * len(strategy.extended.worker_devices)

    def replica(vector: tf.Tensor) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        mine = tf.equal(context.replica_id_in_sync_group, first)
        return context.all_reduce(
            "SUM", tf.where(mine, vector, tf.zeros_like(vector))
        )

    def total(vector: tf.Tensor) -> tf.Tensor:
        sums = strategy.run(replica, args=(vector,))
        return strategy.experimental_local_results(sums)[0]

    return tf.function(
        total,
        input_signature=[tf.TensorSpec([None], tf.int64)],
        autograph=False,
    )


@contextlib.contextmanager
def _patience(strategy: Any, what: str) -> Iterator[None]:
    """Says once, after a while, what this worker waits for."""
    line = (
        "worker %d has waited %.0f s for the other workers at %s; every "
        "worker must come there (fit, evaluate and predict are calls for "
        "all workers)"
    )
    timer = threading.Timer(
        PATIENCE_S,
        logging.getLogger("tfmulti").warning,
        (line, worker(strategy), PATIENCE_S, what),
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _same_place(places: Sequence[str]) -> None:
    if len(set(places)) > 1:
        raise UsageError(
            received=", ".join(
                f"worker {i} at {place}" for i, place in enumerate(places)
            ),
            allowed="the same calls on every worker, in the same order",
            remedy="Call fit, evaluate and predict on every worker, not on "
            "the chief alone.",
        )
