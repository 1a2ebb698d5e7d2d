"""The data that `fit` is given must be the same on every worker.

Every worker reads the global batches and takes its replicas' rows of each
(see `batches.py`), so all must read the same batches in the same order:

    arrays         a sample of rows is compared; the permutation of an epoch
                   is drawn from a seed that all workers have
    tf.data        the pipeline's steps, seeds and source tensors are compared
    PyDataset      its first batch is compared, unless it is drawn anew at
                   each read; its shuffling draws from Python's generator,
                   whose state is compared, and set alike where it differs
    generators     the first batch is compared; a difference is a warning, for
                   it may be drawn at random

A dataset with `AutoShardPolicy.OFF` says that each worker reads a part of its
own; nothing is compared then.
"""

from __future__ import annotations

import logging
import random
import secrets
import zlib
from typing import Any

import numpy as np
import tensorflow as tf
from keras.src import tree
from keras.src.trainers.data_adapters.array_data_adapter import (
    ArrayDataAdapter,
)
from keras.src.trainers.data_adapters.generator_data_adapter import (
    GeneratorDataAdapter,
)
from keras.src.trainers.data_adapters.py_dataset_adapter import (
    PyDatasetAdapter,
)

from tfmulti.errors import UsageError
from tfmulti.keras3 import agreement, seeds

SAMPLED_ROWS = 16
_OFF = tf.data.experimental.AutoShardPolicy.OFF


def dataset_of(strategy: tf.distribute.Strategy, adapter: Any) -> Any:
    """Gives an adapter's dataset, once all workers are found to have it.

    Args:
        strategy: The strategy of the job.
        adapter: Keras's adapter of what the person gave.

    Raises:
        UsageError: Workers have different data, on all of them alike.
    """
    if not agreement.several(strategy):
        return adapter.get_tf_dataset()
    if isinstance(adapter, ArrayDataAdapter):
        return _array_dataset(strategy, adapter)
    if isinstance(adapter, PyDatasetAdapter) and adapter.shuffle:
        _agree_on_python_state(strategy)
    dataset = adapter.get_tf_dataset()
    _compare(strategy, _pipeline(dataset) + _repeatable_batch(adapter))
    if isinstance(adapter, GeneratorDataAdapter):
        _compare_generators(strategy, adapter)
    return dataset


def is_off(dataset: Any) -> bool:
    """Whether the person shards the data themselves."""
    if not isinstance(dataset, tf.data.Dataset):
        return True
    policy = dataset.options().experimental_distribute.auto_shard_policy
    return policy == _OFF


def _array_dataset(strategy: Any, adapter: Any) -> tf.data.Dataset:
    arrays = [a for a in tree.flatten(adapter._inputs) if a is not None]
    parts = [_array(f"array {i}", a) for i, a in enumerate(arrays)]
    parts.append(["batch size", repr(adapter._batch_size), []])
    found = _compare(strategy, parts)
    given = [each["seed"] for each in found]
    if given[0] is not None and len(set(given)) == 1:
        return adapter.get_tf_dataset()
    agreed = found[0]["draw"] if given[0] is None else given[0]
    with seeds.tensorflow_seeded(agreed):
        return adapter.get_tf_dataset()


def _agree_on_python_state(strategy: Any) -> None:
    found = agreement.gather(
        strategy,
        {"state": seeds.python_state(), "draw": secrets.randbits(31)},
        "the order of a PyDataset",
    )
    if any(each["state"] != found[0]["state"] for each in found):
        random.seed(found[0]["draw"])
        logging.getLogger("tfmulti").warning(
            "Python's `random` was in different states on the workers; it is "
            "seeded alike, since a shuffled PyDataset draws its order from it"
        )


def _repeatable_batch(adapter: Any) -> list[list[Any]]:
    """Lists what is in a PyDataset's first batch, if it reads alike twice."""
    if not isinstance(adapter, PyDatasetAdapter):
        return []
    first, again = (_batch(adapter.py_dataset[0]) for _ in range(2))
    if first != again:
        return [["batch 0 of the PyDataset", "drawn at each read", []]]
    return first


def _batch(batch: Any) -> list[list[Any]]:
    leaves = [np.asarray(a) for a in tree.flatten(batch) if a is not None]
    return [_array(f"array {i} of batch 0", a) for i, a in enumerate(leaves)]


def _compare_generators(strategy: Any, adapter: GeneratorDataAdapter) -> None:
    found = agreement.gather(
        strategy, _batch(adapter._first_batches[0]), "the first batch"
    )
    if any(each != found[0] for each in found):
        logging.getLogger("tfmulti").warning(
            "the generators of the workers do not begin with the same batch: "
            "of each batch a worker uses the rows of its own replicas alone. "
            "That is right for batches drawn at random. A generator that "
            "reads a part of the data on each worker loses examples: give "
            "every worker the whole data, or a tf.data.Dataset with "
            "AutoShardPolicy.OFF"
        )


def _compare(strategy: Any, parts: list[list[Any]]) -> list[dict[str, Any]]:
    """Compares parts [name, text, numbers] over workers; gives all that."""
    found = agreement.gather(
        strategy,
        {
            "parts": parts,
            "seed": seeds.tensorflow_seed(),
            "draw": secrets.randbits(31),
        },
        "the start of fit, evaluate or predict",
    )
    for number, each in enumerate(found):
        _require_equal(found[0]["parts"], each["parts"], number)
    return found


def _require_equal(ours: list[Any], theirs: list[Any], number: int) -> None:
    if not ours or not theirs:  # Empty: said to be a part of its own.
        if len(ours) != len(theirs):
            raise _different("AutoShardPolicy.OFF", number, "only one", "")
        return
    for (name, text, sample), other in zip(ours, theirs, strict=False):
        if [name, text] != other[:2]:
            raise _different(name, number, text, f"{other[0]} {other[1]}")
        if not np.allclose(
            sample, other[2], rtol=1e-3, atol=1e-5, equal_nan=True
        ):
            raise _different(name, number, "other values", "")
    if len(ours) != len(theirs):
        raise _different(
            "the pipeline", number, f"{len(ours)} steps", f"{len(theirs)}"
        )


def _different(
    name: str, number: int, ours: str, theirs: str
) -> UsageError:
    apart = f"{ours} on worker 0, {theirs} on worker {number}"
    return UsageError(
        received=f"data that differs between workers 0 and {number} in "
        f"{name} ({apart if theirs else ours})",
        allowed="the same data in the same order on every worker, which is "
        "cut into parts for the replicas",
        remedy="Give every worker the whole data and the same seeds "
        "(keras.utils.set_random_seed with one number, or shuffle(seed=...) "
        "alike). Where each worker reads a part of its own, give a "
        "tf.data.Dataset whose options set "
        "experimental_distribute.auto_shard_policy to AutoShardPolicy.OFF.",
    )


def _pipeline(dataset: Any) -> list[list[Any]]:
    """Lists what decides a pipeline's elements and their order."""
    if is_off(dataset):
        return []
    parts: list[list[Any]] = [
        ["element spec", repr(dataset.element_spec), []],
        ["number of batches", repr(int(dataset.cardinality())), []],
    ]
    left = [dataset]
    while left:
        step = left.pop()
        parts += _step(step)
        left += step._inputs()
    return parts


def _step(dataset: Any) -> list[list[Any]]:
    name = type(dataset).__name__.strip("_")
    settings = {
        key: int(value)
        for key, value in _settings(dataset)
        if _is_number(value)
    }
    parts: list[list[Any]] = [[name, repr(settings), []]]
    for tensor in getattr(dataset, "_tensors", ()):
        if isinstance(tensor, tf.Tensor):
            parts.append(_array(f"tensor of {name}", tensor))
    return parts


def _settings(dataset: Any) -> list[tuple[str, Any]]:
    names = ("_seed", "_seed2", "_buffer_size", "_batch_size", "_count")
    return [(name, getattr(dataset, name, None)) for name in names]


def _is_number(value: Any) -> bool:
    if isinstance(value, tf.Tensor):
        return value.shape.rank == 0 and hasattr(value, "numpy")
    return isinstance(value, (int, np.integer))


def _array(name: str, array: Any) -> list[Any]:
    """Gives name, shape and dtype, and numbers of a sample of rows."""
    shape = tuple(array.shape)
    text = f"{shape} {getattr(array, 'dtype', '')}".replace("<dtype: ", "")
    rows = shape[0] if shape else 0
    if not rows:
        return [name, text, []]
    sample = np.unique(np.linspace(0, rows - 1, SAMPLED_ROWS).astype(int))
    if isinstance(array, tf.Tensor) and array.dtype != tf.variant:
        found = tf.gather(array, sample).numpy()
    elif isinstance(array, np.ndarray):
        found = array[sample]
    else:
        return [name, text, []]
    return [name, text, _numbers(found)]


def _numbers(rows: np.ndarray) -> list[float]:
    """Gives one number for each row: its weighted mean, or a checksum."""
    flat = rows.reshape(len(rows), -1)
    if flat.dtype.kind not in "fiub":
        return [float(zlib.crc32(repr(r.tolist()).encode())) for r in flat]
    weights = np.linspace(1.0, 2.0, flat.shape[1])
    return [float(v) for v in (flat * weights).mean(axis=1, dtype=float)]
