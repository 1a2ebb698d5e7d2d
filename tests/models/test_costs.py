"""The arithmetic of costs."""

from __future__ import annotations

from tfmulti_models import costs


def test_a_dense_layer_by_hand():
    assert costs.dense(3, 5) == costs.Cost(3 * 5 + 5, 2 * 3 * 5)
    assert costs.dense(3, 5, positions=7, bias=False) == costs.Cost(15, 210)


def test_a_convolution_by_hand():
    # 3x3 over 4x4 output pixels, 2 channels to 6.
    assert costs.conv(16, 3, 2, 6) == costs.Cost(108 + 6, 2 * 16 * 108)


def test_costs_add_and_repeat():
    one, two = costs.Cost(1, 10), costs.Cost(2, 5)
    assert costs.total([one, two, two]) == one + two * 2 == costs.Cost(5, 20)
    assert costs.total([]) == costs.Cost(0, 0)
