"""Builds a model from what its data looks like, without taking any data.

Under a strategy every variable must exist before the first step. Stock Keras
takes a batch from the data for that, averages it over the replicas (which
fails for uneven batches, strings and several hosts) and loses it when the
data is a generator (https://github.com/keras-team/keras/issues/20585). The
shapes and dtypes of the dataset's elements are all that is needed.

A model with a `train_step` of its own is traced once through that very
function in a scratch graph, with optimizers that note which variables they
are given instead of updating them: so models without `call` and optimizers
that are built lazily get what they would create on one device.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf
from keras.src import backend, tree

from tfmulti.keras3 import state as state_lib

_NOTED: contextvars.ContextVar[list[Any] | None] = contextvars.ContextVar(
    "tfmulti_noted_optimizers", default=None
)


def build(model: keras.Model, data: Any) -> None:
    """Creates every variable that the model's steps will need.

    Args:
        model: A compiled model, created in its strategy's scope.
        data: The specs (or tensors) of one element: x, (x, y) or
            (x, y, sample_weight), nested as the model takes them.
    """
    ragged = _has_ragged(data)
    own = overrides(model, "train_step") and not _all_built(model)
    if model.compiled and (own or ragged):
        _build_by_trial(model, data)
    if ragged or not _callable_model(model):
        # Keras's own way to build forgets that a tensor is ragged.
        return
    with model.distribute_strategy.scope():
        model._symbolic_build(data_batch=_symbolic(data))


def overrides(model: keras.Model, method: str) -> bool:
    """Whether a person's class replaces a method of Keras's trainer."""
    return not getattr(type(model), method).__module__.startswith("keras.")


def _callable_model(model: keras.Model) -> bool:
    if type(model).call is keras.Layer.call or not hasattr(model, "call"):
        return False
    return not (overrides(model, "train_step") and not model.built)


def _all_built(model: keras.Model) -> bool:
    layers = [m for m in model._flatten_layers() if m is not model]
    optimizers = state_lib.optimizers_of(model)
    return (
        bool(layers)
        and all(layer.built for layer in layers)
        and all(optimizer.built for optimizer in optimizers)
    )


def _build_by_trial(model: keras.Model, data: Any) -> None:
    strategy = model.distribute_strategy
    with strategy.scope(), _optimizers_note() as noted:
        backend.compute_output_spec(_trial_step(model, data), _symbolic(data))
    with strategy.scope():
        for optimizer, variables in noted:
            if not optimizer.built:
                optimizer.build(variables)


def _trial_step(model: keras.Model, specs: Any) -> Callable[[Any], Any]:
    strategy = model.distribute_strategy

    def step(data: Any) -> Any:
        data = tree.map_structure(_as_ragged, specs, data)
        # A train_step may ask which replica it is.
        with tf.distribute.ReplicaContext(strategy, 0):
            model.train_step(data)
        return tf.zeros(())

    return step


def _has_ragged(data: Any) -> bool:
    return any(
        isinstance(v, (tf.RaggedTensorSpec, tf.RaggedTensor))
        for v in tree.flatten(data)
    )


def _as_ragged(spec: Any, value: Any) -> Any:
    """Makes a stand-in ragged again, where the data is."""
    if isinstance(spec, tf.RaggedTensor):
        spec = tf.type_spec_from_value(spec)
    if not isinstance(spec, tf.RaggedTensorSpec):
        return value
    return tf.RaggedTensor.from_tensor(
        value,
        ragged_rank=spec.ragged_rank,
        row_splits_dtype=spec.row_splits_dtype,
    )


@contextlib.contextmanager
def _optimizers_note() -> Iterator[list[Any]]:
    noted: list[Any] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def noting_apply(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps an optimizer's `apply`: notes its variables in a trial."""

    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        noted = _NOTED.get()
        if noted is None:
            return original(self, grads, trainable_variables)
        noted.append((self, list(trainable_variables or ())))
        return None

    return apply


def trial_gradient(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `tf.GradientTape.gradient`: a trial needs shapes alone."""

    def gradient(
        tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if _NOTED.get() is None:
            return original(tape, target, sources, *args, **kwargs)
        return tf.nest.map_structure(
            lambda s: tf.zeros([d or 1 for d in s.shape], s.dtype), sources
        )

    return gradient


def _symbolic(data: Any) -> Any:
    def one(value: Any) -> Any:
        if value is None or isinstance(
            value, (tf.OptionalSpec, tf.experimental.Optional)
        ):
            return None
        return backend.KerasTensor(
            tuple(value.shape),
            backend.standardize_dtype(value.dtype),
            sparse=isinstance(value, (tf.SparseTensorSpec, tf.SparseTensor)),
            ragged=isinstance(value, (tf.RaggedTensorSpec, tf.RaggedTensor)),
        )

    return tree.map_structure(one, data)
