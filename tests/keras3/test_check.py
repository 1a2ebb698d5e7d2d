"""check_replicas names the first variable that differs, and by how much."""

from __future__ import annotations

import pytest

from tests.keras3.programs import data, mlp


def _trained(strategy):
    import keras

    model = mlp(strategy, lambda: keras.optimizers.Adam(0.1))
    x, y = data(16)
    model.fit(x, y, batch_size=8, verbose=0)
    return model


def test_equal_copies_are_equal(two):
    from tfmulti.keras3 import check

    assert check.check_replicas(_trained(two)) is None


@pytest.mark.parametrize("where", ["kernel", "momentum"])
def test_a_change_on_one_replica_is_named(two, where):
    from tfmulti.keras3 import check

    model = _trained(two)
    kernel = model.layers[1].kernel
    variable = kernel if where == "kernel" else model.optimizer.variables[2]
    copy = variable.value.values[1]
    copy.scatter_nd_add([[0] * copy.shape.rank], [0.25])
    found = check.check_replicas(model)
    assert found.variable == variable.path
    assert found.replicas == (0, 1)
    assert found.difference >= 0.2
    with pytest.raises(check.ReplicasDiffer, match=variable.path):
        model.fit(
            *data(8), epochs=0, verbose=0, callbacks=[check.CheckReplicas()]
        )
        callback = check.CheckReplicas()
        callback.set_model(model)
        callback.on_epoch_end(0)


def test_not_a_number_differs_from_a_number(two):
    from tfmulti.keras3 import check

    model = _trained(two)
    copy = model.layers[0].bias.value.values[1]
    copy.assign(copy * float("nan"))
    assert check.check_replicas(model).variable == model.layers[0].bias.path
