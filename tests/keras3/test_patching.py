"""Fixes are put in force, taken back, and left out where Keras changed."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from tests.keras3.programs import assert_same, fitted, mlp


def _targets():
    from tfmulti.keras3.fixes import FIXES

    return [
        (patch.owner(), patch.attribute) for f in FIXES for patch in f.patches
    ]


def test_each_target_is_what_its_fix_was_written_for(two):
    from tfmulti import keras3

    keras3.undo()
    try:
        changed = {f.name: f.changed() for f in keras3.FIXES}
    finally:
        keras3.apply(two)
    assert not any(changed.values()), changed


def test_undo_puts_back_every_original(two):
    from tfmulti import keras3

    patched = [inspect.getattr_static(o, a) for o, a in _targets()]
    keras3.undo()
    try:
        for (owner, attribute), replacement in zip(
            _targets(), patched, strict=True
        ):
            now = inspect.getattr_static(owner, attribute, None)
            assert now is replacement.__wrapped__, attribute
    finally:
        keras3.apply(two)


def test_apply_twice_wraps_once(two):
    from tfmulti import keras3

    before = [inspect.getattr_static(o, a) for o, a in _targets()]
    keras3.apply(two)
    after = [inspect.getattr_static(o, a) for o, a in _targets()]
    assert all(a is b for a, b in zip(after, before, strict=True))


def test_a_changed_target_on_another_version_is_left_out(two, caplog):
    from tfmulti import keras3
    from tfmulti.keras3 import fixes

    keras3.undo()
    verified, table = keras3.VERIFIED, keras3.FIXES
    losses = fixes.losses.FIX
    other = dataclasses.replace(
        losses,
        patches=tuple(
            dataclasses.replace(p, digest="other") for p in losses.patches
        ),
    )
    try:
        keras3.VERIFIED, keras3.FIXES = ("0.0",), (other, fixes.gradients.FIX)
        record = keras3.apply(two)
        assert [f.name for f in record.fixes] == ["gradients"]
        assert "'losses' is left out" in caplog.text
        assert len(caplog.records) == 1
    finally:
        keras3.VERIFIED, keras3.FIXES = verified, table
        keras3.undo()
        keras3.apply(two)


def test_models_outside_a_strategy_run_kerass_own_code(two):
    import keras

    from tfmulti.keras3 import engine, prediction

    model = mlp(None, lambda: keras.optimizers.SGD(0.1))
    model.make_train_function()
    model.make_predict_function()
    assert not isinstance(model.train_function, engine.StepFunction)
    assert not isinstance(model.predict_function, prediction.PredictFunction)


@pytest.mark.parametrize(
    "what", ["clip", "uneven", "steps_per_execution", "state"]
)
@pytest.mark.xfail(strict=True, reason="faults of stock Keras 3.15")
def test_stock_keras_is_equal_to_one_device(two, what):
    """Turns red on the day that upstream repairs one of these."""
    import keras
    import numpy as np

    from tfmulti import keras3

    optimizer = {
        "clip": lambda: keras.optimizers.SGD(0.1, global_clipnorm=0.01)
    }.get(what, lambda: keras.optimizers.SGD(0.1))
    arguments = {
        "rows": 23 if what == "uneven" else 24,
        **({"steps_per_execution": 2} if what != "clip" else {}),
    }
    if what == "state":
        arguments = {
            "rows": 24,
            "layers": lambda: [keras.layers.BatchNormalization()],
        }
    keras3.undo()
    try:
        got = fitted(two, optimizer, **arguments)
    finally:
        keras3.apply(two)
    wanted = fitted(
        two if what == "state" else None, optimizer, **arguments
    )
    for name, array in wanted.items():
        np.testing.assert_allclose(got[name], array, 1e-4, 1e-5, err_msg=name)


def test_strategies_of_one_process_do_not_share_collectives(two, three):
    import keras

    from tfmulti import keras3
    from tfmulti.strategy import build_strategy

    other = build_strategy("mirrored", "CPU", 2)
    keras3.apply(other)
    bases = [s.extended._collective_key_base for s in (two, three, other)]
    assert len(set(bases)) == 3

    def accumulated(strategy):
        return fitted(
            strategy,
            lambda: keras.optimizers.SGD(
                0.1, gradient_accumulation_steps=2
            ),
        )

    assert_same(accumulated(other), accumulated(two))
