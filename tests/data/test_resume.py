"""Runs that stop and go on, with any number of workers, from any source."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.data import stores
from tfmulti import data
from tfmulti.data.arrays import ArraySource
from tfmulti.data.order import ENDS, Order
from tfmulti.data.position import Position

pytestmark = pytest.mark.usefixtures("devices")

KINDS = sorted(stores.SOURCES)
WORKERS = (1, 2, 3, 4, 8)
# (workers, replicas of each), a division for each step of an epoch.
DIVISIONS = ((2, 1), (3, 1), (2, 2), (2, 4))


def _run(source, position, steps, workers, local=1):
    """Gives what the workers read, each step as one global batch."""
    start = position.step_in(source.fingerprint, position.order)
    datasets = [
        data.worker_batches(
            source,
            position.order,
            replica_ids=range(w * local, (w + 1) * local),
            replicas=workers * local,
            epochs=None,
            start_step=start,
        ).take(steps * local)
        for w in range(workers)
    ]
    readers = [iter(dataset) for dataset in datasets]
    return [_global_batch(readers, local) for _ in range(steps)]


def _global_batch(readers, local):
    """Puts together what all replicas read in a step."""
    parts = [next(reader) for reader in readers for _ in range(local)]
    return [np.concatenate(tensors) for tensors in zip(*parts, strict=True)]


def _after(position, steps):
    saved = Position(
        global_step=position.global_step + steps,
        source=position.source,
        order=position.order,
    ).to_json()
    return Position.from_json(saved)


def _start(source, end):
    order = Order(
        example_count=len(source), global_batch_size=6, seed=5, end=end
    )
    return Position(global_step=0, source=source.fingerprint, order=order)


def _assert_same(got, wanted):
    """Compares batches bit for bit."""
    assert len(got) == len(wanted)
    for batch, other in zip(got, wanted, strict=True):
        for tensor, as_before in zip(batch, other, strict=True):
            np.testing.assert_array_equal(tensor, as_before)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_step_by_another_number_of_workers(kind, end, tmp_path):
    """Stops after every step, and goes on with another number each time."""
    source = stores.SOURCES[kind](tmp_path)
    position = _start(source, end)
    steps = position.order.steps_per_epoch
    unbroken = _run(source, position, steps, workers=1)
    numbers = stores.numbers_of(source)
    read = []
    for workers, local in DIVISIONS[:steps]:
        read += _run(source, position, 1, workers, local)
        position = _after(position, 1)
    _assert_same(read, unbroken)
    seen = []
    for batch in read:
        weights = batch[2] if end == "pad" else np.ones(len(batch[0]))
        examples = [tf.constant(t[weights > 0]) for t in batch[:2]]
        seen += numbers(examples)
    wanted = len(source) - position.order.dropped_per_epoch
    assert len(seen) == len(set(seen)) == wanted


@pytest.mark.parametrize("end", ENDS)
def test_resume_at_every_step_equals_the_unbroken_run(end):
    numbers = np.arange(23)
    source = ArraySource((numbers[:, None], numbers))
    begin = _start(source, end)
    steps = 2 * begin.order.steps_per_epoch
    unbroken = _run(source, begin, steps, workers=1)
    for step in range(steps):
        workers = WORKERS[step % len(WORKERS)]
        rest = _run(source, _after(begin, step), steps - step, workers)
        _assert_same(rest, unbroken[step:])


@pytest.mark.parametrize("first", range(1, 4))
def test_four_workers_then_two_then_four(first):
    numbers = np.arange(40)
    source = ArraySource((numbers[:, None], numbers))
    begin = _start(source, "short")
    left = begin.order.steps_per_epoch - first - 2
    read = _run(source, begin, first, workers=4)
    read += _run(source, _after(begin, first), 2, workers=2)
    read += _run(source, _after(begin, first + 2), left, workers=4)
    assert sorted(np.concatenate([b[1] for b in read])) == list(range(40))
