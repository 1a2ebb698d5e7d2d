"""One global batch after another, each cut into the replicas' parts.

    dataset of global batches (the one a single device would read)
        │  every worker reads it, in the same order
        ▼
    for each global batch of n rows: replica r gets rows [n*r//R, n*(r+1)//R)
        │  with the number of rows it got and n itself
        ▼
    one part per local replica: on GPUs fetched ahead by
    strategy.distribute_datasets_from_function, on CPUs taken as they are

So each replica knows its share of the batch without asking the others, parts
differ by at most one row, rows keep their order (`predict` concatenates), and
each row is used exactly once.

* A replica whose part would be empty (n < R) gets one stand-in row and the
  row count 0: a model need not survive an empty tensor.
* When the number of batches is not known, an endless tail of marked elements
  follows the data, so that reaching the end needs no exception and no
  agreement among workers, and never takes a batch away.
* A dataset that is distributed already (the person's own, or one whose
  sharding they switched off) is taken as it is (`ForeignBatches`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.distribute_utils import regroup

DATA, ROWS, TOTAL, MORE = "data", "rows", "total", "more"

# More batches than any run takes: the caller counts its steps.
ENDLESS = sys.maxsize


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Which replicas of the job this worker holds.

    Attributes:
        replicas: Replicas in the whole job.
        first: Number of this worker's first replica.
        local: Replicas on this worker.
    """

    replicas: int
    first: int
    local: int

    @staticmethod
    def of(strategy: tf.distribute.Strategy) -> Placement:
        """Reads the placement off a strategy."""
        replicas = strategy.num_replicas_in_sync
        local = len(strategy.extended.worker_devices)
        worker = getattr(strategy.extended, "_id_in_cluster", 0)
        return Placement(
            replicas=replicas,
            first=worker * local if replicas > local else 0,
            local=local,
        )


class Batches:
    """An iterable that makes a pass over the data at each `iter`.

    Where data can be read again without end, all passes take from one
    repeating iterator: making an iterator for several devices traces a dozen
    functions, and one that goes on shuffles every epoch anew.

    Args:
        strategy: The strategy whose replicas share each batch.
        dataset: Elements are global batches: nested tensors (dense, ragged,
            sparse or strings) whose first dimension is the batch.
        count: Batches in one pass; None where it is not known.
        repeatable: Whether a second pass over `dataset` gives its data again.
    """

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        dataset: tf.data.Dataset,
        *,
        count: int | None,
        repeatable: bool,
    ):
        self.element_spec = dataset.element_spec
        self.count = count
        parts = split(dataset, Placement.of(strategy), endless=count is None)
        self._repeats = repeatable and count not in (None, 0, ENDLESS)
        if self._repeats:
            parts = parts.repeat()
        self._distributed: Any = parts
        if not _on_cpus(strategy):
            self._distributed = strategy.distribute_datasets_from_function(
                lambda _: parts
            )
        self._strategy = strategy
        self._last: BatchIterator | None = None

    def __iter__(self) -> BatchIterator:
        last = self._last
        whole = (0, self.count)  # A pass has ended, or was never begun.
        if self._repeats and last is not None and last.remaining in whole:
            distributed = last.distributed
        else:
            distributed = iter(self._distributed)
        self._last = BatchIterator(self._strategy, distributed, self.count)
        return self._last


class ForeignBatches:
    """A dataset that is distributed already, taken as it is."""

    def __init__(self, strategy: tf.distribute.Strategy, distributed: Any):
        self._strategy = strategy
        self._distributed = distributed
        self.element_spec = _one_replica_spec(distributed.element_spec)

    def __iter__(self) -> BatchIterator:
        count = known_count(self._distributed)
        # Workers may hold different numbers of batches, unless without end.
        remaining = ENDLESS if count == ENDLESS else None
        return BatchIterator(
            self._strategy, iter(self._distributed), remaining, foreign=True
        )


class BatchIterator:
    """Where one pass over the data stands.

    Attributes:
        distributed: What a `tf.function` takes elements from, by
            `next_parts`.
        remaining: Global batches that are left, or None if not known.
        foreign: Elements are bare data, without row counts or an end mark.
    """

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        distributed: Any,
        remaining: int | None,
        foreign: bool = False,
    ):
        self._strategy = strategy
        self.distributed = distributed
        self.remaining = remaining
        self.foreign = foreign
        self.ended = False

    def take(self, wanted: int) -> int:
        """Reserves up to `wanted` batches; raises StopIteration at the end."""
        if self.remaining is None:
            if self.ended:
                raise StopIteration
            return wanted
        if not self.remaining:
            raise StopIteration
        taken = min(wanted, self.remaining)
        self.remaining -= taken
        return taken

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.take(1)
        element = next_parts(self._strategy, self.distributed)
        if not self.foreign and self.remaining is None:
            if not bool(first_of(element[MORE])):
                self.ended = True
                raise StopIteration
        return element


def next_parts(strategy: tf.distribute.Strategy, iterator: Any) -> Any:
    """Takes the local replicas' next parts; eagerly or in a graph.

    Args:
        strategy: The strategy of the job.
        iterator: A strategy's iterator, or a dataset's own, which has the
            parts one after the other.

    Returns:
        Nested values, one for each replica.
    """
    if not isinstance(iterator, tf.data.Iterator):
        return next(iterator)
    local = len(strategy.extended.worker_devices)
    parts = [next(iterator) for _ in range(local)]
    return regroup(tuple(parts), always_wrap=True)


def _on_cpus(strategy: tf.distribute.Strategy) -> bool:
    """Whether parts need not be copied to where they are used.

    TensorFlow's iterator over several devices would give each a thread, a
    buffer and a dozen traced functions; and of many such iterators in one
    process one in some hundreds hangs or crashes when it is deleted.
    """
    devices = strategy.extended.worker_devices
    return all("CPU" in device.upper() for device in devices)


def known_count(dataset: Any) -> int | None:
    """Gives the number of batches, `ENDLESS`, or None where it is unknown."""
    cardinality = dataset.cardinality
    count = int(cardinality() if callable(cardinality) else cardinality)
    if count == tf.data.INFINITE_CARDINALITY:
        return ENDLESS
    return count if count >= 0 else None


def split(
    dataset: tf.data.Dataset, placement: Placement, *, endless: bool
) -> tf.data.Dataset:
    """Cuts each global batch into this worker's parts, one element a part.

    Args:
        dataset: Global batches.
        placement: The replicas of this worker.
        endless: Whether to follow the data by marked elements without end.
    """
    options = tf.data.Options()
    options.deterministic = True
    if not endless and _divides(dataset.element_spec, placement.replicas):
        return _even_parts(dataset, placement).with_options(options)
    parts = _uneven_parts(dataset, placement)
    if endless:
        parts = parts.map(lambda part: part | {MORE: tf.constant(True)})
        end = _end_mark(parts.element_spec)
        parts = parts.concatenate(tf.data.Dataset.from_tensors(end).repeat())
    return parts.prefetch(2 * placement.local).with_options(options)


def part_of(batch: Any, replica: Any, replicas: int) -> dict[str, Any]:
    """Cuts one replica's part out of a global batch.

    Args:
        batch: Nested tensors; the first dimension of each is the batch.
        replica: The replica's number, 0 <= replica < replicas.
        replicas: Replicas in the job.

    Returns:
        The part's data, its row count and the batch's row count.
    """
    total = rows_of(batch)
    wide = tf.cast(total, tf.int64)
    replica = tf.cast(replica, tf.int64)
    begin = wide * replica // replicas
    end = wide * (replica + 1) // replicas
    rows = tf.cast(end - begin, tf.int32)
    begin = tf.minimum(begin, tf.maximum(wide - 1, 0))
    end = tf.minimum(tf.maximum(end, begin + 1), wide)
    return {
        DATA: tf.nest.map_structure(lambda t: _rows(t, begin, end), batch),
        ROWS: rows,
        TOTAL: total,
    }


def rows_of(batch: Any) -> tf.Tensor:
    """Gives the number of rows of a batch as an int32 scalar."""
    for value in tf.nest.flatten(batch):
        if isinstance(value, tf.RaggedTensor):
            return tf.cast(value.nrows(), tf.int32)
        if isinstance(value, tf.SparseTensor):
            return tf.cast(value.dense_shape[0], tf.int32)
        if isinstance(value, tf.Tensor) and value.shape.rank != 0:
            return tf.shape(value)[0]
    raise ValueError(
        "the data has no tensor with a batch dimension; give `fit` batches "
        "whose tensors have the batch as their first dimension"
    )


def _rows(value: Any, begin: tf.Tensor, end: tf.Tensor) -> Any:
    if (
        value is None
        or isinstance(value, tf.experimental.Optional)
        or _is_scalar(value)
    ):
        return value
    if isinstance(value, tf.SparseTensor):
        start = tf.concat(
            [[begin], tf.zeros_like(value.dense_shape[1:])], axis=0
        )
        size = tf.concat([[end - begin], value.dense_shape[1:]], axis=0)
        return tf.sparse.slice(value, start, size)
    rows = value[begin:end]
    if isinstance(value, tf.RaggedTensor) or not _is_plain(value.dtype):
        return rows
    # Rows of a generator's array share the person's own memory, which later
    # operations may overwrite in place.
    return tf.raw_ops.DeepCopy(x=rows)


def _is_plain(dtype: tf.DType) -> bool:
    return dtype.is_floating or dtype.is_integer or dtype.is_bool


def _is_scalar(value: Any) -> bool:
    return isinstance(value, tf.Tensor) and value.shape.rank == 0


def _divides(spec: Any, replicas: int) -> bool:
    """Whether every tensor has a static batch that the replicas divide."""
    sizes = {
        s.shape[0]
        if isinstance(s, tf.TensorSpec) and s.shape.rank
        else None
        for s in tf.nest.flatten(spec)
    }
    if len(sizes) != 1:
        return False
    (size,) = sizes
    return size is not None and size % replicas == 0


def _even_parts(
    dataset: tf.data.Dataset, placement: Placement
) -> tf.data.Dataset:
    """Static, equal parts: reshapes, which copy nothing, and no counts."""

    def stacked(batch: Any) -> Any:
        def one(value: tf.Tensor) -> tf.Tensor:
            size = value.shape[0] // placement.replicas
            begin = placement.first * size
            mine = value[begin : begin + placement.local * size]
            return tf.reshape(
                mine, [placement.local, size, *value.shape[1:].as_list()]
                if value.shape[1:].is_fully_defined()
                else tf.concat(
                    [[placement.local, size], tf.shape(value)[1:]], axis=0
                ),
            )

        return {DATA: tf.nest.map_structure(one, batch)}

    spec = dataset.element_spec
    mapped = dataset.map(lambda *b: stacked(_whole(b, spec)))
    return mapped.unbatch().prefetch(2 * placement.local)


def _uneven_parts(
    dataset: tf.data.Dataset, placement: Placement
) -> tf.data.Dataset:
    def parts(*batch: Any) -> tf.data.Dataset:
        whole = _whole(batch, dataset.element_spec)
        numbers = tf.data.Dataset.range(
            placement.first, placement.first + placement.local
        )
        return numbers.map(
            lambda replica: part_of(whole, replica, placement.replicas)
        )

    return dataset.flat_map(parts)


def _whole(batch: tuple[Any, ...], spec: Any) -> Any:
    """Undoes tf.data's unpacking of a tuple element into arguments.

    A tuple of one is unpacked too: `predict([a, b])` reads ((a, b),).
    """
    return batch if type(spec) is tuple else batch[0]


def _end_mark(spec: Any) -> Any:
    def zero(s: Any) -> Any:
        if isinstance(s, tf.OptionalSpec):
            return tf.experimental.Optional.empty(s._element_spec)  # noqa: SLF001
        if isinstance(s, tf.RaggedTensorSpec):
            return tf.RaggedTensor.from_tensor(
                tf.zeros([1] * s.shape.rank, s.dtype),
                ragged_rank=s.ragged_rank,
                row_splits_dtype=s.row_splits_dtype,
            )
        if isinstance(s, tf.SparseTensorSpec):
            return tf.sparse.from_dense(
                tf.zeros([d or 1 for d in s.shape], s.dtype)
            )
        return tf.zeros([d or 1 for d in s.shape.as_list()], s.dtype)

    return tf.nest.map_structure(
        zero, spec, expand_composites=False
    ) | {MORE: tf.constant(False)}


def first_of(value: Any) -> Any:
    """Gives the first local replica's value."""
    values = getattr(value, "values", None)
    return values[0] if values is not None else value


def _one_replica_spec(spec: Any) -> Any:
    """Reads a distributed dataset's spec as that of one replica's part."""

    def one(s: Any) -> Any:
        components = getattr(s, "_component_specs", None)
        return components[0] if components else s

    return tf.nest.map_structure(one, spec)
