"""What a training leaves, as named arrays: the part that programs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.equivalence.program import Place

FIT = {"batch_size": 4, "epochs": 2, "shuffle": False, "verbose": 0}


def trained(
    place: Place,
    build: Callable[[], keras.Model],
    x: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    evaluate: bool = True,
    predict: Any = None,
    steps: bool = True,
    optimizer: bool = True,
    **fit: Any,
) -> dict[str, Any]:
    """Builds in scope, fits, evaluates and predicts.

    Args:
        place: Where.
        build: Gives the compiled model.
        x, y, sample_weight: What `fit` and `evaluate` take.
        evaluate: Whether to evaluate.
        predict: Input of `predict`; None: `x` where it is an array or nested
            arrays; a tuple, such as `()`: do not predict.
        steps: Whether the optimizer's count of steps is compared.
        optimizer: Whether the optimizer's state is compared.
        **fit: Further arguments of `fit`.
    """
    with place.scope():
        model = build()
    options = FIT | fit
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    history = model.fit(x, y, **given, **options)
    result = history_of(history)
    if evaluate:
        size = options["batch_size"]
        logs = model.evaluate(
            x, y, **given, batch_size=size, verbose=0, return_dict=True
        )
        result |= {f"evaluate/{k}": v for k, v in logs.items()}
    if predict is None and _are_arrays(x):
        predict = x
    if predict is not None and not isinstance(predict, tuple):
        outputs = model.predict(
            predict, batch_size=options["batch_size"], verbose=0
        )
        result |= flat("predict", outputs)
    return result | state_of(place, model, steps=steps, optimizer=optimizer)


def history_of(history: Any) -> dict[str, Any]:
    """Gives the epochs' logs."""
    return {f"history/{k}": v for k, v in history.history.items()}


def state_of(
    place: Place,
    model: keras.Model,
    *,
    steps: bool = True,
    optimizer: bool = True,
) -> dict[str, Any]:
    """Gives weights and optimizer state, and how far copies are apart."""
    result: dict[str, Any] = {
        f"weight/{i}": read(v) for i, v in enumerate(model.weights)
    }
    result["copies"] = apart(place, model.weights)
    chosen = getattr(model, "optimizer", None)
    if chosen is None or not optimizer:
        return result
    variables = [
        v for v in chosen.variables if steps or not v.path.endswith("iteration")
    ]
    result |= {f"optimizer/{i}": read(v) for i, v in enumerate(variables)}
    result["optimizer/copies"] = apart(place, variables)
    return result


def read(variable: Any) -> np.ndarray:
    """Gives a variable's value, bfloat16 and float16 as float32."""
    value = tf.convert_to_tensor(variable.value)
    if value.dtype in (tf.bfloat16, tf.float16):
        value = tf.cast(value, tf.float32)
    return value.numpy()


def apart(place: Place, variables: Iterable[Any]) -> float:
    """Gives the largest difference among the local copies of variables."""
    worst = 0.0
    if place.strategy is None:
        return worst
    for variable in variables:
        copies = [
            np.asarray(copy.numpy(), "float64")
            for copy in place.strategy.experimental_local_results(
                variable.value
            )
            if copy.dtype != tf.string
        ]
        for copy in copies[1:]:
            worst = max(worst, float(np.abs(copy - copies[0]).max(initial=0)))
    return worst


def flat(name: str, values: Any) -> dict[str, np.ndarray]:
    """Names the leaves of nested arrays."""
    leaves = keras.tree.flatten(values)
    return {f"{name}/{i}": _plain(leaf) for i, leaf in enumerate(leaves)}


def _plain(value: Any) -> np.ndarray:
    if isinstance(value, tf.RaggedTensor):
        value = value.to_tensor()
    if isinstance(value, tf.SparseTensor):
        value = tf.sparse.to_dense(value)
    value = np.asarray(value)
    return value.astype(str) if value.dtype == object else value


def _are_arrays(x: Any) -> bool:
    if isinstance(x, Mapping):
        return all(_are_arrays(v) for v in x.values())
    if isinstance(x, (list, tuple)):
        return all(_are_arrays(v) for v in x)
    return isinstance(x, (np.ndarray, tf.Tensor))


class BatchLogs(keras.callbacks.Callback):
    """Keeps what each batch's end is told."""

    def __init__(self) -> None:
        super().__init__()
        self.train: list[dict[str, np.ndarray]] = []
        self.test: list[dict[str, np.ndarray]] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.train.append({k: np.asarray(v) for k, v in logs.items()})

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.test.append({k: np.asarray(v) for k, v in logs.items()})

    def arrays(self) -> dict[str, Any]:
        """Gives the series of each log."""
        return {
            f"{kind}_batch/{name}": [entry[name] for entry in entries]
            for kind, entries in (("train", self.train), ("test", self.test))
            for name in (entries[0] if entries else ())
        }
