"""What a step costs: collectives, traces and iterators, counted."""

from __future__ import annotations

import collections

from tests.keras3.programs import data, mlp


def _operations(graph) -> collections.Counter:
    counted = collections.Counter(op.type for op in graph.get_operations())
    for function in graph._functions.values():
        definition = getattr(function, "function_def", None)
        if definition is not None:
            counted.update(node.op for node in definition.node_def)
    return counted


def test_nothing_is_traced_after_the_first_epochs(two):
    import keras
    from tensorflow.python.eager.polymorphic_function import (
        tracing_compilation,
    )

    traced = []
    original = tracing_compilation._create_concrete_function

    def counting(*args, **kwargs):
        traced.append(epoch[-1])
        return original(*args, **kwargs)

    epoch = [0]
    x, y = data(24)
    model = mlp(two, lambda: keras.optimizers.Adam())
    tracing_compilation._create_concrete_function = counting
    try:
        model.fit(
            x,
            y,
            batch_size=8,
            epochs=6,
            verbose=0,
            validation_data=(x, y),
            callbacks=[
                keras.callbacks.LambdaCallback(
                    on_epoch_begin=lambda number, _: epoch.append(number)
                )
            ],
        )
    finally:
        tracing_compilation._create_concrete_function = original
    late = [number for number in traced if number >= 2]
    assert len(late) <= 4, collections.Counter(late)


def test_unread_logs_are_not_computed(two):
    import keras

    from tfmulti.keras3 import engine

    x, y = data(16)
    model = mlp(two, lambda: keras.optimizers.SGD())
    model.fit(x, y, batch_size=8, verbose=0)
    model.train_function.read_logs = False
    import tensorflow as tf

    from tfmulti.keras3 import batches

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    iterator = iter(
        batches.Batches(two, dataset, count=2, repeatable=True)
    )
    logs = model.train_function(iterator)
    assert isinstance(logs, engine.UnreadLogs)
    assert not dict(logs)
    assert set(logs.names) == {"loss", "mae"}
    assert set(logs.read()) == {"loss", "mae"}
