"""Collectives in the graph of one training step on two workers, counted."""

from __future__ import annotations

import pytest

from tests.strategy.worker_processes import run_workers

PROGRAM = """
import numpy as np
import tfmulti
s = tfmulti.init()
import keras

def counted(make, optimizer, x, y):
    with s.scope():
        model = make()
        model.compile(
            optimizer(),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[
                "accuracy",
                keras.metrics.SparseTopKCategoricalAccuracy(2),
                keras.metrics.SparseCategoricalCrossentropy(from_logits=True),
            ],
        )
    model.fit(x, y, batch_size=8, verbose=0)
    graphs = model.train_function._execute._list_all_concrete_functions()
    found = []
    for function in graphs:
        definition = function.graph.as_graph_def()
        nodes = list(definition.node)
        for inner in definition.library.function:
            nodes += inner.node_def
        found.append(sum("CollectiveReduce" in node.op for node in nodes))
    return found

def normalized(**arguments):
    layers = [keras.Input((8, 8, 3))]
    for _ in range(9):
        layers += [
            keras.layers.Conv2D(4, 3, padding="same"),
            keras.layers.BatchNormalization(**arguments),
        ]
    layers += [keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(3)]
    return keras.Sequential(layers)

x = np.random.rand(16, 8, 8, 3).astype("float32")
y = np.arange(16) % 3
report(
    plain=counted(
        normalized, lambda: keras.optimizers.Adam(clipnorm=1.0), x, y),
    synchronized=counted(
        lambda: normalized(synchronized=True), keras.optimizers.Adam, x, y),
)
"""


@pytest.mark.workers
def test_a_step_with_normalization_and_metrics_has_one_collective():
    for result in run_workers(PROGRAM, 2, timeout_s=300):
        # The gradients, packed. TensorFlow reduces nothing else in a step.
        assert result["plain"] == [1]
        # And for each synchronised layer one forward and one backward.
        assert result["synchronized"] == [1 + 2 * 9]
