"""Predictions of all replicas, complete and in order.

Keras's `predict` hands over the elements of one execution and expects the
outputs of the whole global batch. Parts are consecutive rows in the order of
the replicas, so that their outputs only have to be put one behind the other;
across workers they are gathered. Rows that only stood in for an empty part
are cut off again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras.src import tree

from tfmulti.keras3 import batches as batches_lib
from tfmulti.keras3 import randomness
from tfmulti.keras3 import step as step_lib
from tfmulti.keras3.engine import cut


class PredictFunction:
    """Runs a model's `predict_step` over elements on all replicas."""

    def __init__(self, model: keras.Model):
        self._model = model
        self._strategy = model.distribute_strategy
        run: Callable[..., Any] = self._one_batch
        if not model.run_eagerly:
            run = tf.function(run, reduce_retracing=True, autograph=False)
        self._run = run

    def __call__(self, elements: Sequence[Any]) -> Any:
        """Gives the outputs of all elements, joined along the batch."""
        outputs = [self._run(self._element(e)) for e in elements]
        if len(outputs) == 1:
            return outputs[0]
        return tree.map_structure(lambda *parts: join(parts), *outputs)

    def _element(self, element: Any) -> Any:
        if isinstance(element, dict) and batches_lib.DATA in element:
            return {k: v for k, v in element.items() if k != batches_lib.MORE}
        if _is_per_replica(element):
            return {batches_lib.DATA: element}
        return cut(self._strategy, element)

    def _one_batch(self, element: dict[str, Any]) -> Any:
        state = randomness.capture_state()

        def replica(element: dict[str, Any]) -> Any:
            with randomness.shared_state(state):
                return self._replica_step(element)

        outputs = self._strategy.run(replica, args=(element,))
        return tree.map_structure(self._whole, outputs)

    def _replica_step(self, element: dict[str, Any]) -> Any:
        data = tree.map_structure(
            lambda v: (
                None if isinstance(v, tf.experimental.Optional) else v
            ),
            element[batches_lib.DATA],
        )
        replicas = self._strategy.num_replicas_in_sync
        with step_lib.running(step_lib.Step(share=1.0 / replicas)):
            outputs = self._model.predict_step(data)
        rows = element.get(batches_lib.ROWS)
        if rows is None:
            return outputs
        return tree.map_structure(lambda t: _first_rows(t, rows), outputs)

    def _whole(self, value: Any) -> Any:
        """Joins one output of all replicas of the job."""
        local = self._strategy.experimental_local_results(value)
        placement = batches_lib.Placement.of(self._strategy)
        if placement.local == placement.replicas:
            return join(local)
        # Workers are gathered in their order.
        return self._strategy.gather(value, axis=0)


def join(parts: Sequence[Any]) -> Any:
    """Puts tensors one behind the other along their first dimension."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, tf.SparseTensor):
        return tf.sparse.concat(axis=0, sp_inputs=list(parts))
    if first.shape.rank == 0:
        return tf.stack(parts)
    return tf.concat(parts, axis=0)


def _first_rows(value: Any, rows: tf.Tensor) -> Any:
    if isinstance(value, tf.SparseTensor) or value.shape.rank == 0:
        return value
    return value[:rows] if not isinstance(value, tf.RaggedTensor) else (
        value[: tf.cast(rows, value.row_splits.dtype)]
    )


def _is_per_replica(element: Any) -> bool:
    return any(
        isinstance(v, tf.distribute.DistributedValues)
        for v in tree.flatten(element)
    )
