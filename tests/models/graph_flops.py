"""Counts the FLOPs of a traced graph, independently of the factories.

Every product in the graph is found by its kind of operation, and its size is
read off the static shapes that TensorFlow inferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import tensorflow as tf


def forward_flops(call: Any, *shapes_and_dtypes: tuple) -> int:
    """Counts multiply-adds times two of `call` on inputs of these shapes."""
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in shapes_and_dtypes]
    graph = tf.function(call).get_concrete_function(*specs).graph
    return sum(_flops(operation) for operation in _operations(graph))


def _operations(graph: Any) -> Iterator[Any]:
    for operation in graph.get_operations():
        yield operation
        for name in ("f", "then_branch", "else_branch", "body", "cond"):
            inner = operation.node_def.attr.get(name)
            if inner is not None and inner.func.name:
                yield from _operations(
                    graph._get_function(inner.func.name).graph
                )


def _flops(operation: Any) -> int:
    shapes = [tuple(tensor.shape) for tensor in operation.inputs]
    output = tuple(operation.outputs[0].shape) if operation.outputs else ()
    if operation.type == "Conv2D":
        return 2 * prod(output) * prod(shapes[1][:3])
    if operation.type == "Conv2DBackpropInput":
        # Inputs: the shape to make, the kernel, and what is spread out.
        return 2 * prod(shapes[2][:3]) * prod(shapes[1])
    if operation.type == "MatMul":
        side = 0 if operation.get_attr("transpose_a") else 1
        return 2 * prod(output) * shapes[0][side]
    if operation.type in ("BatchMatMulV2", "BatchMatMul"):
        side = -2 if operation.get_attr("adj_x") else -1
        return 2 * prod(output) * shapes[0][side]
    assert "MatMul" not in operation.type, operation.type
    assert operation.type != "Einsum", "count this one too"
    return 0
