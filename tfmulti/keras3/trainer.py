"""The thin place that puts the engine where Keras looks for its own.

Each function here wraps one method of Keras's TensorFlow trainer. A model
that was made outside a strategy, or in one that this package does not know,
runs Keras's own code untouched; all others get the engine. What is replaced,
and how it is undone, is listed in `fixes.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras.src.trainers.data_adapters import array_data_adapter
from keras.src.trainers.data_adapters.tf_dataset_adapter import (
    TFDatasetAdapter,
)
from keras.src.trainers.epoch_iterator import EpochIterator

from tfmulti.keras3 import batches as batches_lib
from tfmulti.keras3 import build as build_lib
from tfmulti.keras3 import engine, inputs, prediction, randomness
from tfmulti.keras3 import metrics as metrics_lib
from tfmulti.keras3 import state as state_lib
from tfmulti.keras3.patching import applied


def handles(strategy: Any) -> bool:
    """Whether the engine runs models of this strategy."""
    return isinstance(
        strategy,
        (
            tf.distribute.MirroredStrategy,
            tf.distribute.MultiWorkerMirroredStrategy,
        ),
    )


def _ours(model: Any) -> bool:
    return handles(model._distribute_strategy)


def make_step_function(method: str) -> Callable[..., Any]:
    """Gives a wrapper of `make_train_function` or `make_test_function`."""
    attribute = {"train_step": "train_function", "test_step": "test_function"}

    def wrapper(original: Callable[..., Any]) -> Callable[..., Any]:
        def make(self: keras.Model, force: bool = False) -> Any:
            if not _ours(self):
                if method == "train_step" and self.train_function is None:
                    _warn_outside(self)
                return original(self, force)
            name = attribute[method]
            if getattr(self, name) is None or force:
                randomness.global_generator_in(self.distribute_strategy)
                setattr(self, name, engine.StepFunction(self, method))
            return getattr(self, name)

        return make

    return wrapper


def _warn_outside(model: keras.Model) -> None:
    """Says that a model trains on one device although there are replicas."""
    replicas = applied().replicas
    if replicas > 1:
        logging.getLogger("tfmulti").warning(
            "the model %r was made outside the strategy's scope and trains "
            "on one device, not on all %d replicas; make and compile it "
            "inside `with strategy.scope():`",
            model.name,
            replicas,
        )


def make_predict_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `make_predict_function`."""

    def make(self: keras.Model, force: bool = False) -> Any:
        if not _ours(self):
            return original(self, force)
        if self.predict_function is None or force:
            randomness.global_generator_in(self.distribute_strategy)
            self.predict_function = prediction.PredictFunction(self)
        agree(self)
        return self.predict_function

    return make


def maybe_symbolic_build(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `_maybe_symbolic_build`: builds from specs, takes no data."""

    def build(
        self: keras.Model, iterator: Any = None, data_batch: Any = None
    ) -> None:
        if not _ours(self):
            return original(self, iterator, data_batch)
        if iterator is not None:
            data_batch = iterator.element_spec
        build_lib.build(self, _as_tensors(data_batch))
        return None

    return build


def _as_tensors(batch: Any) -> Any:
    def one(value: Any) -> Any:
        if value is None or hasattr(value, "shape"):
            return value
        return tf.convert_to_tensor(value)

    return keras.tree.map_structure(one, batch)


def epoch_iterator(original: type) -> type:
    """Gives the class that cuts global batches into the replicas' parts."""

    class ReplicatedEpochIterator(original):  # type: ignore[misc,valid-type]
        """Keras's epoch iterator over the parts of global batches."""

        def __init__(
            self, distribute_strategy: Any = None, *args: Any, **kwargs: Any
        ):
            if not handles(distribute_strategy):
                super().__init__(distribute_strategy, *args, **kwargs)
                return
            EpochIterator.__init__(self, *args, **kwargs)
            self._distribute_strategy = distribute_strategy
            self._distributed_dataset = _batches(
                distribute_strategy, self.data_adapter
            )
            self.element_spec = self._distributed_dataset.element_spec
            self._forget_foreign_count()

        def reset(self) -> None:
            super().reset()
            self._forget_foreign_count()

        def _forget_foreign_count(self) -> None:
            # Shards are batched anew when they are distributed, so that the
            # adapter's count is not that of the steps.
            if isinstance(
                self._distributed_dataset, batches_lib.ForeignBatches
            ):
                self._num_batches = None

    return ReplicatedEpochIterator


def _batches(strategy: tf.distribute.Strategy, adapter: Any) -> Any:
    arrays = isinstance(adapter, array_data_adapter.ArrayDataAdapter)
    dataset = inputs.dataset_of(strategy, adapter)
    if not isinstance(dataset, tf.data.Dataset):
        return batches_lib.ForeignBatches(strategy, dataset)
    if inputs.is_off(dataset) and not arrays:
        # The person shards the data: every worker has batches of its own.
        return batches_lib.ForeignBatches(
            strategy, strategy.experimental_distribute_dataset(dataset)
        )
    count = adapter.num_batches
    if count is None:
        count = batches_lib.known_count(dataset)
    again = arrays or isinstance(adapter, TFDatasetAdapter)
    return batches_lib.Batches(
        strategy, dataset, count=count, repeatable=again
    )


def metrics_result_or_logs(
    original: Callable[..., Any],
) -> Callable[..., Any]:
    """Wraps `_get_metrics_result_or_logs`, called where a pass has ended."""

    def result(self: keras.Model, logs: Any) -> Any:
        if not _ours(self):
            return original(self, logs)
        agree(self)
        if not isinstance(logs, engine.UnreadLogs):
            return original(self, logs)
        found = self.get_metrics_result()
        return found if set(found) == set(logs.names) else logs.read()

    return result


def get_metrics_result(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `get_metrics_result`: all metrics in one collective."""

    def result(self: keras.Model) -> dict[str, Any]:
        if (
            not _ours(self)
            or not tf.executing_eagerly()
            or not tf.distribute.in_cross_replica_context()
        ):
            return original(self)
        leaves = metrics_lib.leaf_metrics(self.metrics)
        read = kept_function(
            self, "read", leaves, lambda: _reader(self, leaves)
        )
        with metrics_lib.results_given(leaves, read()):
            return original(self)

    return result


def _reader(model: keras.Model, leaves: list[Any]) -> Callable[[], Any]:
    strategy = model.distribute_strategy

    def read() -> Any:
        values = strategy.run(lambda: metrics_lib.global_values(leaves, [])[0])
        return keras.tree.map_structure(
            lambda v: strategy.experimental_local_results(v)[0], values
        )

    return read


def agree(model: keras.Model) -> None:
    """Makes state that layers keep equal on all replicas (see `state.py`)."""
    variables = state_lib.drifting(model)
    strategy = model.distribute_strategy
    if not variables or strategy.num_replicas_in_sync == 1:
        return
    kept_function(
        model,
        "agree",
        variables,
        lambda: lambda: strategy.run(lambda: state_lib.take_mean(variables)),
    )()


def kept_function(
    model: keras.Model,
    name: str,
    on: list[Any],
    make: Callable[[], Callable[[], Any]],
) -> Callable[[], Any]:
    """Gives a tf.function that is made again only when `on` changes.

    It is kept on the model, so that it goes when the model goes.
    """
    attribute = f"_tfmulti_{name}"
    key = [id(item) for item in on]
    kept = model.__dict__.get(attribute)
    if kept is None or kept[0] != key:
        kept = (key, tf.function(make(), autograph=False))
        object.__setattr__(model, attribute, kept)
    return kept[1]
