"""What a layer costs: its parameters, and its floating-point operations.

A factory describes its model twice: once in Keras layers, and once as a sum
of these costs, so that a planner can ask how large a model is without making
it. Tests hold the two equal: parameters against `count_params`, operations
against the operations of the traced graph.

Convention for operations (FLOPs): one forward pass of one example; a
multiply-add counts as two; only convolutions and matrix products count, since
the rest (normalisation, activations, softmax, biases) is a few percent and
limited by memory, not arithmetic. Padding counts as if it were data, and
causal attention counts the whole square, because both are computed. A
training step costs about three forward passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Parameters, and FLOPs of one example's forward pass."""

    parameters: int = 0
    flops: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.parameters + other.parameters, self.flops + other.flops
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(self.parameters * times, self.flops * times)


def total(costs: Iterable[Cost]) -> Cost:
    """Gives the sum of the costs."""
    return sum(costs, Cost())


def conv(
    positions: int,
    kernel: int,
    inputs: int,
    outputs: int,
    *,
    bias: bool = True,
) -> Cost:
    """Gives the cost of a square convolution.

    Args:
        positions: Places where the kernel is applied: output pixels, or for
            a transposed convolution its input pixels.
        kernel: Side of the kernel in pixels.
        inputs: Input channels.
        outputs: Output channels.
        bias: Whether each output channel has a bias.
    """
    weights = kernel * kernel * inputs * outputs
    return Cost(weights + outputs * bias, 2 * positions * weights)


def dense(
    inputs: int, outputs: int, *, positions: int = 1, bias: bool = True
) -> Cost:
    """Gives the cost of a dense layer applied at `positions` places."""
    return conv(positions, 1, inputs, outputs, bias=bias)


def batch_norm(channels: int) -> Cost:
    """Scale, offset, moving mean and moving variance per channel."""
    return Cost(4 * channels)


def layer_norm(width: int) -> Cost:
    """Scale and offset per feature."""
    return Cost(2 * width)
