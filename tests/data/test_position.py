"""Positions: saved, read again, and refused where the data are others."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tfmulti.data.order import Order
from tfmulti.data.position import Position
from tfmulti.errors import UsageError

ORDER = Order(example_count=23, global_batch_size=6, seed=5)


def _position(step=9, source="aa", order=ORDER):
    return Position(global_step=step, source=source, order=order)


@pytest.mark.parametrize("end", ["short", "drop", "pad"])
def test_a_saved_position_is_the_same_when_read(end):
    order = dataclasses.replace(ORDER, end=end)
    for step in range(3 * order.steps_per_epoch):
        saved = _position(step, order=order).to_json()
        assert json.loads(saved)["epoch"] == step // order.steps_per_epoch
        read = Position.from_json(saved)
        assert read == _position(step, order=order)
        assert read.step_in("aa", order) == step


def test_other_data_are_refused():
    with pytest.raises(UsageError, match="data bb .* the data aa"):
        _position().step_in("bb", ORDER)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("example_count", 24),
        ("global_batch_size", 5),
        ("seed", 6),
        ("shuffle", False),
        ("end", "drop"),
    ],
)
def test_another_order_is_refused_and_the_difference_named(name, value):
    other = dataclasses.replace(ORDER, **{name: value})
    with pytest.raises(UsageError) as caught:
        _position().step_in("aa", other)
    assert caught.value.received == f"{name}={value}"
    assert f"{name}={getattr(ORDER, name)}" in caught.value.allowed


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"global_step": -1},
        {"global_step": "9"},
        {"global_step": True},
        {"epoch": 0},
        {"order": {"seeds": 3}},
        {"order": None},
        {"more": 1},
    ],
)
def test_damaged_positions_are_refused(change):
    fields = json.loads(_position().to_json()) | change
    with pytest.raises(UsageError):
        Position.from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "7"])
def test_what_is_no_position(text):
    with pytest.raises(UsageError, match="position"):
        Position.from_json(text)
