"""The step engine: runs a model's steps on all replicas of its strategy.

    fit ─► train_function(iterator)
             │ one tf.function call: one or many steps
             ▼
           for each global batch:  strategy.run(replica_step, parts)
             │                       each replica: model.train_step(its part)
             ▼                       inside `step.running(...)`
           logs: nothing is exchanged for them unless somebody reads them

It stands where Keras's `_make_function` stands and keeps Keras's outer loops
(`fit`, `evaluate`, `predict`). Three rules keep it right:

* There is no tf.function between the outermost one and `strategy.run`: the
  keys of collectives are lost in an inner function that stands in a `cond`
  (fault "steps_per_execution").
* A step runs only for a batch that is there: the number of batches is counted
  on the host where it is known; otherwise the data ends in marked elements.
* Whether logs are read at batch ends is decided once a `fit`, alike on all
  workers, since reading them is a collective.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras.src import tree

from tfmulti.keras3 import batches as batches_lib
from tfmulti.keras3 import metrics as metrics_lib
from tfmulti.keras3 import randomness, reduction, xla
from tfmulti.keras3 import state as state_lib
from tfmulti.keras3 import step as step_lib
from tfmulti.keras3.build import overrides


class UnreadLogs(dict):
    """Logs of a step that nobody has read: empty, until they are asked for.

    Args:
        names: The keys that the step's logs have.
        read: Computes them, over all replicas.
    """

    def __init__(
        self, names: Sequence[str], read: Callable[[], dict[str, Any]]
    ):
        super().__init__()
        self.names = tuple(names)
        self.read = read


class StepFunction:
    """One of a model's step methods, run over batches on all replicas.

    Args:
        model: The model, created in its strategy's scope.
        method: Name of the method: "train_step" or "test_step".
    """

    def __init__(self, model: keras.Model, method: str):
        self._model = model
        self._method = method
        self._strategy = model.distribute_strategy
        self._structure: Any = None
        self._logs: list[tuple[Any, ...]] = []
        self._metrics: list[keras.Metric] = []
        self._compiles = self._may_compile()
        self.read_logs = True
        self._execute = self._graph(self._execution)
        self._execute_batch = self._graph(self._bare_batch)
        self._finish = self._graph(self._global_logs)

    def _graph(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._model.run_eagerly:
            return function
        return tf.function(function, reduce_retracing=True, autograph=False)

    def __call__(self, iterator: Any) -> dict[str, Any]:
        """Runs the next execution; raises StopIteration where data ends."""
        if not isinstance(iterator, batches_lib.BatchIterator):
            parts = cut(self._strategy, next(iter(iterator)))
            return self._finish(self._execute_batch(parts))
        raw = self._next_execution(iterator)
        if self.read_logs or not isinstance(self._structure, dict):
            return self._finish(raw)
        return UnreadLogs(list(self._structure), lambda: self._finish(raw))

    def _next_execution(self, iterator: batches_lib.BatchIterator) -> Any:
        count = iterator.take(self._model.steps_per_execution)
        endless = iterator.remaining is None
        ran, raw = self._execute(
            iterator.distributed,
            count if count == 1 else tf.constant(count),
            endless=endless,
            foreign=iterator.foreign,
        )
        if endless and int(ran) < count:
            iterator.ended = True
            if not int(ran):
                raise StopIteration
        return raw

    # One execution: one or many steps.

    def _execution(
        self, iterator: Any, count: Any, *, endless: bool, foreign: bool
    ) -> tuple[Any, Any]:
        """Runs up to `count` steps; gives how many ran and the last's logs."""

        def one() -> Any:
            return self._one_batch(self._next(iterator))

        def if_more(raw: Any) -> tuple[Any, Any]:
            more, element = self._following(iterator, foreign)
            if tf.executing_eagerly():
                more = bool(more)
                return more, self._one_batch(element()) if more else raw
            return more, tf.cond(
                more, lambda: self._one_batch(element()), lambda: raw
            )

        if not endless and isinstance(count, int):
            return count, one()
        step = if_more if endless else (lambda raw: (True, one()))
        if tf.executing_eagerly():
            return _eager_loop(step, int(count))
        return _graph_loop(step, count, self._zeros(iterator))

    def _next(self, iterator: Any) -> Any:
        return batches_lib.next_parts(self._strategy, iterator)

    def _following(self, iterator: Any, foreign: bool) -> tuple[Any, Any]:
        """Gives whether there is an element, and a function that gives it."""
        if foreign:
            optional = iterator.get_next_as_optional()
            return optional.has_value(), optional.get_value
        element = self._next(iterator)
        more = batches_lib.first_of(element[batches_lib.MORE])
        return more, lambda: element

    def _zeros(self, iterator: Any) -> Any:
        """Gives raw logs of zeros, for loops want their structure first.

        Keras's own steps have no raw logs. A person's step is traced once
        more to see what it returns.
        """
        if not overrides(self._model, self._method):
            return []
        trial = tf.function(
            lambda: self._one_batch(self._next(iterator)), autograph=False
        )
        raw = trial.get_concrete_function().structured_outputs
        return tf.nest.map_structure(
            lambda t: tf.zeros([d or 0 for d in t.shape], t.dtype),
            raw,
            expand_composites=True,
        )

    def _bare_batch(self, element: Any) -> Any:
        """Runs a batch that is no part of a pass: `train_on_batch`'s.

        Nobody says when such batches end, and whoever reads the weights next
        may do so on one worker alone: so state is made equal at once.
        """
        raw = self._one_batch(element)
        drifting = state_lib.drifting(self._model)
        if self._method == "train_step" and drifting:
            self._strategy.run(lambda: state_lib.take_mean(drifting))
        return raw

    def _one_batch(self, element: Any) -> Any:
        if not (isinstance(element, dict) and batches_lib.DATA in element):
            element = {batches_lib.DATA: element}
        metrics = metrics_lib.leaf_metrics(self._model.metrics)
        keras_state = randomness.capture_state()

        def replica(element: Any) -> list[tf.Tensor]:
            with randomness.shared_state(keras_state):
                return self._replica_step(element)

        with metrics_lib.results_noted(metrics):
            return self._strategy.run(replica, args=(element,))

    # One replica.

    def _replica_step(self, element: dict[str, Any]) -> list[tf.Tensor]:
        step = self._new_step(element)
        data = tree.map_structure(_none_for_optional, element["data"])
        with step_lib.running(step):
            if step.rows is None:
                logs = self._call(data)
            else:
                total = element[batches_lib.TOTAL]
                logs = self._call_guarded(step, total, data)
            return self._note_logs(step, logs)

    def _call(self, data: Any) -> Any:
        if self._compiles:
            try:
                return xla.train_step(self._model, data)
            except step_lib.NotCompilable:
                self._compiles = False
                xla.warn_without(
                    "its loss or a layer needs the other replicas' values"
                )
        return getattr(self._model, self._method)(data)

    def _may_compile(self) -> bool:
        """Whether XLA is wanted, and this step is one that it can serve."""
        model = self._model
        if self._method != "train_step" or not model.jit_compile:
            return False
        if overrides(model, "train_step"):
            xla.warn_without("it has a train_step of its own")
            return False
        return not model.run_eagerly and model.optimizer is not None

    def _call_guarded(
        self, step: step_lib.Step, total: tf.Tensor, data: Any
    ) -> Any:
        """Runs a step whose parts may be uneven, or empty on some replicas.

        State that layers keep is averaged over replicas when it is read,
        which weighs all parts alike: so a step with uneven parts starts from
        equal copies and ends with their changes weighted by the shares. What
        a metric counted for a row that only stands in is put back.
        """
        uneven = tf.not_equal(total % self._strategy.num_replicas_in_sync, 0)
        kept = [
            v
            for v in self._model.non_trainable_variables
            if state_lib.drifts(v)
        ]
        counted = [v for m in self._model.metrics for v in m.variables]
        state_lib.take_mean_if(uneven, kept)
        before = [tf.identity(v.value) for v in [*kept, *counted]]
        logs = self._call(data)
        with tf.control_dependencies(_tensors(logs)):
            state_lib.weigh_changes_if(uneven, kept, before, step.share)
            state_lib.put_back_if(
                tf.equal(step.rows, 0), counted, before[len(kept) :]
            )
        return logs

    def _new_step(self, element: dict[str, Any]) -> step_lib.Step:
        replicas = self._strategy.num_replicas_in_sync
        rows = element.get(batches_lib.ROWS)
        if rows is None:
            share = self._share_of_bare(element["data"])
        else:
            total = tf.cast(element[batches_lib.TOTAL], tf.float32)
            share = tf.cast(rows, tf.float32) / total
        if replicas == 1:
            share, rows = 1.0, None
        return step_lib.Step(
            share=share,
            rows=rows,
            defer_gradients=self._defers_gradients(),
        )

    def _share_of_bare(self, data: Any) -> float | tf.Tensor:
        """Gives the share of a part that came without row counts."""
        sizes = {t.shape[0] for t in _tensors(data) if t.shape.rank}
        replicas = self._strategy.num_replicas_in_sync
        if replicas == 1 or None not in sizes:
            return 1.0 / replicas
        rows = tf.cast(batches_lib.rows_of(data), tf.float32)
        (total,) = reduction.sum_over_replicas([rows])
        return tf.math.divide_no_nan(rows, total)

    def _defers_gradients(self) -> bool:
        optimizer = getattr(self._model, "optimizer", None)
        return (
            not overrides(self._model, "train_step")
            and not hasattr(optimizer, "inner_optimizer")
            and bool(getattr(optimizer, "gradient_accumulation_steps", None))
        )

    # Logs.

    def _note_logs(self, step: step_lib.Step, logs: Any) -> list[tf.Tensor]:
        """Remembers where each log comes from; gives those of no metric."""
        self._structure = logs
        self._logs = []
        raw: list[tf.Tensor] = []
        for leaf in tree.flatten(logs):
            noted = step.results.get(id(leaf))
            if noted is not None:
                self._logs.append(("metric", noted[1], noted[2]))
                continue
            leaf = tf.convert_to_tensor(leaf)
            if leaf.dtype.is_floating:
                leaf = leaf * tf.cast(step.share, leaf.dtype)
                self._logs.append(("mean", len(raw), None))
            else:
                self._logs.append(("first", len(raw), None))
            raw.append(leaf)
        return raw

    def _global_logs(self, raw: Any) -> Any:
        def replica(raw: list[tf.Tensor]) -> Any:
            metrics = {
                id(m): m for kind, m, _ in self._logs if kind == "metric"
            }
            means = [raw[i] for kind, i, _ in self._logs if kind == "mean"]
            results, means = metrics_lib.global_values(
                list(metrics.values()), means
            )
            return self._assemble(
                dict(zip(metrics, results, strict=True)), list(means), raw
            )

        values = self._strategy.run(replica, args=(raw,))
        return tree.map_structure(self._local, values)

    def _assemble(
        self, results: dict[int, Any], means: list[Any], raw: list[Any]
    ) -> Any:
        flat = []
        for kind, source, path in self._logs:
            if kind == "metric":
                value = results[id(source)]
                flat.append(value if path is None else value[path])
            else:
                flat.append(means.pop(0) if kind == "mean" else raw[source])
        return tree.pack_sequence_as(self._structure, flat)

    def _local(self, value: Any) -> Any:
        return self._strategy.experimental_local_results(value)[0]


def _eager_loop(step: Callable[[Any], Any], count: int) -> tuple[int, Any]:
    raw: Any = []
    for ran in range(count):
        more, raw = step(raw)
        if not more:
            return ran, raw
    return count, raw


def _graph_loop(
    step: Callable[[Any], Any], count: Any, zeros: Any
) -> tuple[tf.Tensor, Any]:
    flat = tf.nest.flatten(zeros, expand_composites=True)

    def pack(values: Sequence[Any]) -> Any:
        return tf.nest.pack_sequence_as(zeros, values, expand_composites=True)

    def body(ran: Any, more: Any, values: Any) -> Any:
        more, raw = step(pack(values))
        values = tf.nest.flatten(raw, expand_composites=True)
        return ran + tf.cast(more, tf.int32), more, tuple(values)

    unknown = tuple(
        tf.TensorShape([None] * t.shape.rank) for t in flat
    )
    ran, _, values = tf.while_loop(
        lambda ran, more, _: tf.logical_and(ran < count, more),
        body,
        (tf.constant(0), tf.constant(True), tuple(flat)),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([]), unknown),
    )
    return ran, pack(values)


def cut(strategy: tf.distribute.Strategy, batch: Any) -> Any:
    """Cuts a batch that is at hand into the local replicas' parts."""
    batch = tree.map_structure(
        lambda v: v if v is None else tf.convert_to_tensor(v), batch
    )
    replicas = strategy.num_replicas_in_sync
    return strategy.experimental_distribute_values_from_function(
        lambda context: batches_lib.part_of(
            batch, context.replica_id_in_sync_group, replicas
        )
    )


def _none_for_optional(value: Any) -> Any:
    return None if isinstance(value, tf.experimental.Optional) else value


def _tensors(data: Any) -> list[tf.Tensor]:
    return [t for t in tree.flatten(data) if isinstance(t, tf.Tensor)]
