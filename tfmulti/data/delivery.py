"""From a source and an order to batches on one device or on many.

    epochs ──> steps of an epoch ──> rows of one replica ──> fetch ──> prefetch
     (its state)  (a number each)     (example indices)   (parallel, in order)

`global_batches` gives what one device would read. `distributed` gives each
replica of a strategy its part of the same batches: every worker computes and
reads the rows of its own replicas and nothing else, and no worker talks to
another. Element e of a worker's dataset belongs to step e // L and to its
local replica e % L, for L local replicas, which is the order in which
`distribute_datasets_from_function` hands elements out.

Where the batch divides, every part has a static shape. An endless dataset
says so by its cardinality: `tf.distribute` then leaves out the question
"does everybody still have data?", a collective in each step.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import tensorflow as tf

from tfmulti.data.bad_records import BadRecords
from tfmulti.data.order import Order
from tfmulti.data.shuffle_op import epoch_state, shuffled
from tfmulti.data.source import Source, fetch_marked, names_of
from tfmulti.errors import UsageError

_FOREVER = 2**62


def global_batches(
    source: Source,
    *,
    global_batch_size: int,
    seed: int = 0,
    shuffle: bool = True,
    end: str = "short",
    epochs: int | None = 1,
    start_step: int = 0,
    bad_records: BadRecords | None = None,
) -> tf.data.Dataset:
    """Gives the batches that one device would read.

    Args:
        source: Where the examples are.
        global_batch_size: Examples in a batch.
        seed: Seed of the order.
        shuffle: Whether each epoch has a new order.
        end: How an epoch ends: one of `order.ENDS`. "pad" adds a third
            tensor, the sample weights.
        epochs: Passes to give, counting the one that `start_step` lies in;
            None: endless.
        start_step: Global step of the first batch; any step is reached at
            once.
        bad_records: Where to note damaged examples, which then get weight
            zero, in a third tensor as for "pad"; None: they are an error.

    Returns:
        Batches in the structure of the source's examples.

    Raises:
        UsageError: Not one batch in an epoch, or an unknown `end`.
    """
    order = Order(
        example_count=len(source),
        global_batch_size=global_batch_size,
        seed=seed,
        shuffle=shuffle,
        end=end,
    )
    return worker_batches(
        source,
        order,
        epochs=epochs,
        start_step=start_step,
        bad_records=bad_records,
    )


def distributed(
    source: Source,
    strategy: tf.distribute.Strategy,
    *,
    global_batch_size: int,
    seed: int = 0,
    shuffle: bool = True,
    end: str = "short",
    epochs: int | None = 1,
    start_step: int = 0,
    bad_records: BadRecords | None = None,
) -> Any:
    """Gives every replica its part of the batches of `global_batches`.

    Replica r of R gets rows [n * r // R, n * (r + 1) // R) of a batch of n
    rows: parts differ by one row at most and may be empty.

    Args:
        source: Where the examples are; the same on every worker.
        strategy: Whose replicas read; all workers must call this alike.
        global_batch_size: Examples in a step, over all replicas.
        seed: As in `global_batches`, like all that follow.
        shuffle: Whether each epoch has a new order.
        end: How an epoch ends: one of `order.ENDS`.
        epochs: Passes to give; None: endless.
        start_step: Global step of the first batch.
        bad_records: Where to note damaged examples; None: an error.

    Returns:
        A `tf.distribute.DistributedDataset`, or for the default strategy a
        plain dataset.

    Raises:
        UsageError: As for `global_batches`.
    """
    order = Order(
        example_count=len(source),
        global_batch_size=global_batch_size,
        seed=seed,
        shuffle=shuffle,
        end=end,
    )

    def of_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
        replicas = context.num_replicas_in_sync
        local = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * local
        return worker_batches(
            source,
            order,
            replica_ids=range(first, first + local),
            replicas=replicas,
            epochs=epochs,
            start_step=start_step,
            bad_records=bad_records,
        )

    return strategy.distribute_datasets_from_function(of_worker)


def worker_batches(
    source: Source,
    order: Order,
    *,
    replica_ids: range = range(1),
    replicas: int = 1,
    epochs: int | None = 1,
    start_step: int = 0,
    bad_records: BadRecords | None = None,
) -> tf.data.Dataset:
    """Gives the parts of some replicas, step by step and replica by replica.

    Args:
        source: Where the examples are.
        order: Which example comes when.
        replica_ids: The replicas to read for, consecutive.
        replicas: Replicas of the whole job.
        epochs: Passes to give; None: endless.
        start_step: Global step of the first element.
        bad_records: Where to note damaged examples; None: an error.

    Returns:
        len(replica_ids) elements for each step, in the order of the ids.

    Raises:
        UsageError: Weights are wanted (`order.end` is "pad", or there are
            `bad_records`) and the examples are not pairs.
    """
    _check_weights(order, source, bad_records)
    _tell_dropped(order)
    slots = _slots(order, len(replica_ids), epochs, start_step)

    def part(state: tf.Tensor, slot: tf.Tensor) -> Any:
        positions = _positions(order, slot, replica_ids, replicas)
        if order.end != "pad" and bad_records is None:
            return _rows(source, shuffled(positions, state, order))
        count = order.example_count
        indices = shuffled(positions % count, state, order)
        weights = tf.cast(positions < count, tf.float32)
        if bad_records is None:
            return (*_rows(source, indices), weights)
        examples, whole = _marked_rows(source, indices, bad_records)
        return (*examples, weights * tf.cast(whole, tf.float32))

    options = tf.data.Options()
    options.deterministic = True
    return (
        slots.map(part, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
        .apply(_cardinality(order, len(replica_ids), epochs, start_step))
        .with_options(options)
    )


def _slots(
    order: Order, local_replicas: int, epochs: int | None, start_step: int
) -> tf.data.Dataset:
    """Gives (the epoch's state, slot in the epoch), a slot for each part."""
    first_epoch, first_step = divmod(start_step, order.steps_per_epoch)
    stop = _FOREVER if epochs is None else first_epoch + epochs

    def of_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        skipped = tf.where(epoch == first_epoch, first_step, 0)
        slots = tf.data.Dataset.range(
            tf.cast(skipped, tf.int64) * local_replicas,
            order.steps_per_epoch * local_replicas,
        )
        state = tf.data.Dataset.from_tensors(epoch_state(order, epoch))
        return tf.data.Dataset.zip(state.repeat(), slots)

    return tf.data.Dataset.range(first_epoch, stop).flat_map(of_epoch)


def _positions(
    order: Order, slot: tf.Tensor, replica_ids: range, replicas: int
) -> tf.Tensor:
    """Gives the positions of a part; see `Order.positions`."""
    batch, count = order.global_batch_size, order.example_count
    step, replica = slot, tf.constant(replica_ids.start, tf.int64)
    if len(replica_ids) > 1:
        step = slot // len(replica_ids)
        replica += slot % len(replica_ids)
    start = step * batch
    if batch % replicas == 0 and (order.end != "short" or not count % batch):
        rows = np.arange(batch // replicas, dtype=np.int64)
        if replicas > 1:
            start += replica * len(rows)
        return start + rows
    row_count = tf.constant(batch, tf.int64)
    if order.end == "short":
        row_count = tf.minimum(row_count, count - start)
    return tf.range(
        start + row_count * replica // replicas,
        start + row_count * (replica + 1) // replicas,
    )


def _rows(source: Source, indices: tf.Tensor) -> Any:
    """Fetches examples, and states the shapes that are known."""
    return _shaped(source, indices, source.fetch(indices))


def _marked_rows(
    source: Source, indices: tf.Tensor, bad_records: BadRecords
) -> tuple[Any, tf.Tensor]:
    """Fetches examples, says which are whole, and notes the others."""
    examples, whole = fetch_marked(source, indices)

    def note(numbers: np.ndarray, names: np.ndarray) -> np.int64:
        found = [name.decode(errors="replace") for name in names]
        bad_records.add(numbers.tolist(), found)
        return np.int64(len(found))

    def tell() -> tf.Tensor:
        broken = tf.boolean_mask(indices, ~whole)
        given = [broken, names_of(source, broken)]
        return tf.numpy_function(note, given, tf.int64)

    noted = tf.cond(
        tf.reduce_all(whole), lambda: tf.constant(0, tf.int64), tell
    )
    with tf.control_dependencies([noted]):
        whole = tf.ensure_shape(tf.identity(whole), indices.shape)
    return _shaped(source, indices, examples), whole


def _shaped(source: Source, indices: tf.Tensor, examples: Any) -> Any:
    def shaped(spec: tf.TensorSpec, tensor: tf.Tensor) -> tf.Tensor:
        shape = indices.shape[:1].concatenate(spec.shape)
        if tensor.shape.as_list() == shape.as_list():
            return tensor
        return tf.ensure_shape(tensor, shape)

    return tf.nest.map_structure(shaped, source.element_spec, examples)


def _cardinality(
    order: Order, local_replicas: int, epochs: int | None, start_step: int
) -> Any:
    elements = tf.data.INFINITE_CARDINALITY
    if epochs is not None:
        skipped = start_step % order.steps_per_epoch
        steps = epochs * order.steps_per_epoch - skipped
        elements = max(0, steps) * local_replicas
    return tf.data.experimental.assert_cardinality(elements)


def _check_weights(
    order: Order, source: Source, bad_records: BadRecords | None
) -> None:
    spec = source.element_spec
    if isinstance(spec, tuple) and len(spec) == 2:
        return
    if order.end == "pad":
        raise UsageError(
            received="end='pad' for examples that are not (input, target)",
            allowed="short, drop",
            remedy="Choose another end: there is no place for the weights.",
        )
    if bad_records is not None:
        raise UsageError(
            received="bad_records for examples that are not (input, target)",
            allowed="pairs, whose rows can be given weight zero",
            remedy="Leave bad_records out, and mend the damaged files.",
        )


def _tell_dropped(order: Order) -> None:
    if order.end == "drop" and order.dropped_per_epoch:
        logging.getLogger(__name__).warning(
            "%d of %d examples are left out of each epoch (others each "
            "time): a batch of %d does not divide them and end='drop'.",
            order.dropped_per_epoch,
            order.example_count,
            order.global_batch_size,
        )
