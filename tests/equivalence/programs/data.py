"""Everything that `fit`, `evaluate` and `predict` take as data.

Where one device counts a step too many at the end of unknown data (A45), the
count of steps is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.equivalence import problems
from tests.equivalence.outcome import BatchLogs, trained
from tests.equivalence.program import Place, Program, program

L = keras.layers


def _plain() -> keras.Model:
    return problems.compiled(metrics=["mae"])


def _rows(rows: int, batch: int, *reports: str) -> Program:
    """Gives the program for one way in which data may end."""

    @program(f"data/{rows} rows in batches of {batch}", *reports)
    def run(place: Place) -> dict[str, Any]:
        return trained(
            place, _plain, *problems.regression(rows), batch_size=batch
        )

    return run


ENDS = (
    _rows(1, 4, "A07"),
    _rows(2, 4),
    _rows(3, 4),
    _rows(4, 4, "A08"),
    _rows(5, 4, "A07", "A08"),
    _rows(6, 4, "A08"),
    _rows(7, 4, "A08"),
    _rows(9, 3),
    _rows(11, 5),
    _rows(12, 6),
    _rows(3, 1),
    _rows(13, 8),
)


def _dataset(rows: int = 10, batch: int = 4, **options: Any) -> Any:
    x, y = problems.regression(rows)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(batch, **options)


@program("data/dataset")
def dataset(place: Place) -> dict[str, Any]:
    return trained(
        place, _plain, _dataset(), predict=problems.regression(10)[0]
    )


@program("data/dataset drop remainder")
def dataset_dropped(place: Place) -> dict[str, Any]:
    return trained(place, _plain, _dataset(drop_remainder=True))


@program("data/dataset static shapes")
def dataset_static(place: Place) -> dict[str, Any]:
    return trained(
        place, _plain, _dataset(24, 12, drop_remainder=True), epochs=3
    )


@program("data/dataset of unknown length", "A45")
def dataset_unknown(place: Place) -> dict[str, Any]:
    return trained(
        place, _plain, _dataset().filter(lambda *_: True), steps=False
    )


@program("data/dataset repeated, steps per epoch")
def dataset_repeated(place: Place) -> dict[str, Any]:
    return trained(
        place,
        _plain,
        _dataset(11, 3).repeat(),
        steps_per_epoch=3,
        epochs=3,
        evaluate=False,
    )


@program("data/dataset longer than the epochs")
def dataset_longer(place: Place) -> dict[str, Any]:
    return trained(place, _plain, _dataset(17, 3), steps_per_epoch=2, epochs=3)


@program("data/dataset as validation data")
def dataset_validation(place: Place) -> dict[str, Any]:
    return trained(
        place,
        _plain,
        _dataset(),
        validation_data=_dataset(7, 3),
        evaluate=False,
    )


@program("data/validation steps")
def validation_steps(place: Place) -> dict[str, Any]:
    return trained(
        place,
        _plain,
        _dataset(),
        validation_data=_dataset(7, 3).repeat(),
        validation_steps=4,
        validation_freq=2,
        epochs=4,
        evaluate=False,
    )


@program("data/dataset with weights")
def dataset_weights(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    data = tf.data.Dataset.from_tensor_slices((x, y, problems.weights()))
    return trained(place, _plain, data.batch(4))


@program("data/dataset shuffled with a seed", "A10")
def dataset_shuffled(place: Place) -> dict[str, Any]:
    x, y = problems.regression(20)
    data = tf.data.Dataset.from_tensor_slices((x, y))
    data = data.shuffle(20, seed=5).batch(4)
    # One epoch: on one device Keras makes two iterators in each epoch and
    # uses one, so that it passes over every second order.
    return trained(place, _plain, data, evaluate=False, epochs=1)


@program("data/dataset shuffled once with a seed", "A10")
def dataset_shuffled_once(place: Place) -> dict[str, Any]:
    x, y = problems.regression(20)
    data = tf.data.Dataset.from_tensor_slices((x, y))
    data = data.shuffle(20, seed=5, reshuffle_each_iteration=False)
    return trained(place, _plain, data.batch(4), evaluate=False)


@program("data/arrays shuffled", "A10")
def arrays_shuffled(place: Place) -> dict[str, Any]:
    x, y = problems.regression(20)
    return trained(place, _plain, x, y, evaluate=False, shuffle=True, epochs=1)


@program("data/validation split")
def validation_split(place: Place) -> dict[str, Any]:
    return trained(
        place, _plain, *problems.regression(13), validation_split=0.3
    )


@program("data/steps per epoch of arrays")
def array_steps(place: Place) -> dict[str, Any]:
    return trained(
        place, _plain, *problems.regression(22), steps_per_epoch=2, epochs=3
    )


@program("data/tensors")
def tensors(place: Place) -> dict[str, Any]:
    x, y = (tf.constant(v) for v in problems.regression())
    return trained(place, _plain, x, y)


@program("data/float64 and lists of numbers")
def wide(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    return trained(place, _plain, x.astype("float64"), y.astype("float64"))


def _batches(count: int, size: int = 4) -> Iterator[Any]:
    x, y = problems.regression(count * size - 1)
    for begin in range(0, len(x), size):
        yield x[begin : begin + size], y[begin : begin + size]


@program("data/generator", "A06", "A45")
def generator(place: Place) -> dict[str, Any]:
    return trained(
        place, _plain, _batches(5), epochs=1, evaluate=False, steps=False
    )


@program("data/generator of one batch", "A06")
def generator_short(place: Place) -> dict[str, Any]:
    return trained(
        place, _plain, _batches(1), epochs=1, evaluate=False, steps=False
    )


@program("data/endless generator with steps", "A06")
def generator_endless(place: Place) -> dict[str, Any]:
    def endless() -> Iterator[Any]:
        while True:
            yield from _batches(5)

    return trained(
        place,
        _plain,
        endless(),
        steps_per_epoch=3,
        epochs=3,
        evaluate=False,
    )


@program("data/generators for validation and prediction", "A06")
def generator_everywhere(place: Place) -> dict[str, Any]:
    with place.scope():
        model = _plain()
    history = model.fit(_batches(4), validation_data=_batches(3), verbose=0)
    logs = model.evaluate(_batches(5), verbose=0, return_dict=True)
    outputs = model.predict(((x,) for x, _ in _batches(3)), verbose=0)
    result = {f"history/{k}": v for k, v in history.history.items()}
    result |= {f"evaluate/{k}": v for k, v in logs.items()}
    return result | {"predict": outputs}


class Sequence(keras.utils.PyDataset):
    """Eleven rows in batches of four, shuffled anew for each epoch."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.x, self.y = problems.regression(11)
        self.epoch = 0

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        chosen = slice(4 * index, 4 * index + 4)
        return self.x[chosen], self.y[chosen]

    def on_epoch_end(self) -> None:
        self.epoch += 1
        order = np.random.RandomState(self.epoch).permutation(11)
        self.x, self.y = self.x[order], self.y[order]


@program("data/PyDataset")
def py_dataset(place: Place) -> dict[str, Any]:
    return trained(place, _plain, Sequence(), evaluate=False, epochs=3)


@program("data/PyDataset with threads")
def py_dataset_threads(place: Place) -> dict[str, Any]:
    data = Sequence(workers=2, max_queue_size=2)
    return trained(place, _plain, data, epochs=1)


@program("data/PyDataset as validation data")
def py_dataset_validation(place: Place) -> dict[str, Any]:
    return trained(
        place,
        _plain,
        *problems.regression(),
        validation_data=Sequence(),
    )


def _two_inputs(nested: Any) -> keras.Model:
    leaves = keras.tree.flatten(nested)
    joined = L.Concatenate()(leaves)
    return problems.compiled(keras.Model(nested, L.Dense(1)(joined)))


@program("data/dict input")
def dict_input(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    return trained(
        place,
        lambda: _two_inputs(
            {n: keras.Input((s,), name=n) for n, s in (("a", 2), ("b", 1))}
        ),
        {"a": x[:, :2], "b": x[:, 2:]},
        y,
    )


@program("data/list input")
def list_input(place: Place) -> dict[str, Any]:
    x, y = problems.regression()
    return trained(
        place,
        lambda: _two_inputs([keras.Input((2,)), keras.Input((1,))]),
        [x[:, :2], x[:, 2:]],
        y,
    )


@program("data/nested input and output")
def nested(place: Place) -> dict[str, Any]:
    x, y = problems.regression()

    def build() -> keras.Model:
        a, b = keras.Input((2,), name="a"), keras.Input((1,), name="b")
        joined = L.Concatenate()([a, b])
        outputs = {
            "mean": L.Dense(1, name="mean")(joined),
            "pair": L.Dense(2, name="pair")(joined),
        }
        model = keras.Model({"left": a, "right": {"b": b}}, outputs)
        return problems.compiled(model, loss={"mean": "mse", "pair": "mae"})

    return trained(
        place,
        build,
        {"left": x[:, :2], "right": {"b": x[:, 2:]}},
        {"mean": y, "pair": np.concatenate([y, -y], axis=1)},
    )


@program("data/dataset of dicts with list outputs")
def dataset_dicts(place: Place) -> dict[str, Any]:
    x, y = problems.regression()

    def build() -> keras.Model:
        inputs = keras.Input((3,), name="x")
        heads = [L.Dense(1, name=n)(inputs) for n in ("first", "second")]
        return problems.compiled(
            keras.Model({"x": inputs}, heads), loss=["mse", "mae"]
        )

    data = tf.data.Dataset.from_tensor_slices(({"x": x}, (y, -y)))
    return trained(place, build, data.batch(4))


@program("data/strings", "A22")
def strings(place: Place) -> dict[str, Any]:
    words = np.array([["red"], ["green"], ["blue"], ["red"], ["black"]] * 2)

    def build() -> keras.Model:
        inputs = keras.Input((1,), dtype="string")
        ids = L.StringLookup(vocabulary=["red", "green", "blue"])(inputs)
        hidden = L.Flatten()(L.Embedding(5, 3)(ids))
        return problems.compiled(keras.Model(inputs, L.Dense(1)(hidden)))

    return trained(place, build, tf.constant(words), problems.regression()[1])


@program("data/text vectorization", "A22")
def text(place: Place) -> dict[str, Any]:
    lines = ["a cat sat", "the dog ran far", "a dog", "cat ran", "far"] * 2
    x = tf.constant(lines)[:, None]

    def build() -> keras.Model:
        layer = L.TextVectorization(
            vocabulary=["cat", "dog", "ran", "far"], output_sequence_length=4
        )
        model = keras.Sequential(
            [
                keras.Input((1,), dtype="string"),
                layer,
                L.Embedding(7, 3, mask_zero=True),
                L.GlobalAveragePooling1D(),
                L.Dense(1),
            ]
        )
        return problems.compiled(model)

    return trained(place, build, x, problems.regression()[1])


@program("data/hashing", "A22")
def hashing(place: Place) -> dict[str, Any]:
    words = tf.constant([[f"id{i % 6}"] for i in range(10)])

    def build() -> keras.Model:
        inputs = keras.Input((1,), dtype="string")
        hashed = L.Hashing(8, output_mode="one_hot")(inputs)
        return problems.compiled(keras.Model(inputs, L.Dense(1)(hashed)))

    return trained(place, build, words, problems.regression()[1])


def _counted(dtype: str) -> Program:
    """Gives the program whose input has an integer or boolean type."""

    @program(f"data/{dtype} input")
    def run(place: Place) -> dict[str, Any]:
        x = (problems.tokens(length=3) % 5).astype(dtype)

        def build() -> keras.Model:
            inputs = keras.Input((3,), dtype=dtype)
            scaled = L.Lambda(lambda t: tf.cast(t, "float32") / 2)(inputs)
            return problems.compiled(keras.Model(inputs, L.Dense(1)(scaled)))

        return trained(place, build, x, problems.regression()[1])

    return run


TYPES = tuple(map(_counted, ("uint8", "int32", "int64", "bool")))


@program("data/images as uint8")
def uint8_images(place: Place) -> dict[str, Any]:
    draw = np.random.RandomState(0)
    x = draw.randint(0, 256, (10, 4, 4, 1)).astype("uint8")

    def build() -> keras.Model:
        model = keras.Sequential(
            [
                keras.Input((4, 4, 1), dtype="uint8"),
                L.Rescaling(1 / 255),
                L.Flatten(),
                L.Dense(3, "softmax"),
            ]
        )
        return problems.compiled(
            model, loss="sparse_categorical_crossentropy", metrics=["accuracy"]
        )

    return trained(place, build, x, problems.classes()[1])


class Padded(keras.layers.Layer):
    """Turns ragged rows into rows of one length, with zeros."""

    def __init__(self, length: int):
        super().__init__()
        self.length = length

    def call(self, x: Any) -> Any:
        return x.to_tensor(shape=(None, self.length))

    def compute_output_shape(self, shape: Any) -> Any:
        return (shape[0], self.length)


@program("data/ragged")
def ragged(place: Place) -> dict[str, Any]:
    x = tf.ragged.constant(
        [[1, 2, 3], [4], [2, 2], [5, 1, 1, 2], [3], [1, 4], [2], [3, 3]],
        dtype=tf.int32,
    )

    def build() -> keras.Model:
        inputs = keras.Input((None,), dtype="int32", ragged=True)
        hidden = L.Flatten()(L.Embedding(6, 2)(Padded(4)(inputs)))
        return problems.compiled(keras.Model(inputs, L.Dense(1)(hidden)))

    y = problems.regression(8)[1]
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(3)
    return trained(place, build, data)


@program("data/sparse")
def sparse(place: Place) -> dict[str, Any]:
    x = (problems.tokens(length=6) > 3).astype("float32")

    def build() -> keras.Model:
        inputs = keras.Input((6,), sparse=True)
        return problems.compiled(keras.Model(inputs, L.Dense(1)(inputs)))

    return trained(
        place,
        build,
        tf.data.Dataset.from_tensor_slices(
            (tf.sparse.from_dense(x), problems.regression()[1])
        ).batch(4),
    )


@program("data/sequences of several lengths")
def bucketed(place: Place) -> dict[str, Any]:
    ids = problems.tokens(12, 6)
    y = problems.regression(12)[1]

    def batches() -> Iterator[Any]:
        for begin, length in ((0, 3), (4, 6), (8, 4)):
            chosen = slice(begin, begin + 4)
            yield ids[chosen, :length], y[chosen]

    data = tf.data.Dataset.from_generator(
        batches,
        output_signature=(
            tf.TensorSpec((None, None), tf.int32),
            tf.TensorSpec((None, 1), tf.float32),
        ),
    )

    def build() -> keras.Model:
        model = keras.Sequential(
            [
                keras.Input((None,), dtype="int32"),
                L.Embedding(7, 3, mask_zero=True),
                L.GlobalAveragePooling1D(),
                L.Dense(1),
            ]
        )
        return problems.compiled(model)

    return trained(place, build, data, steps=False)


@program("data/only inputs")
def only_inputs(place: Place) -> dict[str, Any]:
    x, _ = problems.regression()

    def build() -> keras.Model:
        inputs = keras.Input((3,))
        outputs = AutoEncode()(inputs)
        return problems.compiled(keras.Model(inputs, outputs), loss=None)

    return trained(place, build, x)


class AutoEncode(keras.layers.Layer):
    """Adds the loss of its own reconstruction."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = L.Dense(2, "tanh"), L.Dense(3)

    def call(self, x: Any) -> Any:
        found = self.up(self.down(x))
        self.add_loss(keras.ops.mean((found - x) ** 2))
        return found


def _executions(steps: int, rows: int) -> Program:
    """Gives the program with several steps an execution."""

    @program(f"data/{rows} rows, {steps} steps per execution")
    def run(place: Place) -> dict[str, Any]:
        return trained(
            place,
            lambda: problems.compiled(
                optimizer=keras.optimizers.Adam(0.05),
                metrics=["mae"],
                steps_per_execution=steps,
            ),
            *problems.regression(rows),
            batch_size=2,
        )

    return run


EXECUTIONS = (
    _executions(2, 10),
    _executions(3, 10),
    _executions(4, 11),
    _executions(5, 6),
)


@program("data/several steps per execution of unknown length")
def executions_unknown(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(metrics=["mae"], steps_per_execution=3),
        _dataset(14, 2).filter(lambda *_: True),
        steps=False,
    )


@program("data/several steps per execution of a generator", "A06")
def executions_generator(place: Place) -> dict[str, Any]:
    return trained(
        place,
        lambda: problems.compiled(steps_per_execution=2),
        _batches(5),
        epochs=1,
        evaluate=False,
        steps=False,
    )


@program("data/eager")
def eager(place: Place) -> dict[str, Any]:
    logs = BatchLogs()
    result = trained(
        place,
        lambda: problems.compiled(metrics=["mae"], run_eagerly=True),
        *problems.regression(7),
        callbacks=[logs],
    )
    return result | logs.arrays()


@program("data/predict of nested outputs")
def predict_nested(place: Place) -> dict[str, Any]:
    x, _ = problems.regression(11)
    with place.scope():
        inputs = keras.Input((3,))
        model = keras.Model(
            inputs, {"a": L.Dense(2)(inputs), "b": [L.Dense(1)(inputs)]}
        )
    outputs = [
        model.predict(x, batch_size=4, verbose=0),
        model.predict(tf.data.Dataset.from_tensor_slices(x).batch(3)),
        model.predict(x, batch_size=2, steps=3, verbose=0),
    ]
    leaves = keras.tree.flatten(outputs)
    return {str(i): leaf for i, leaf in enumerate(leaves)}


@program("data/evaluate with weights and uneven ends")
def evaluate_weights(place: Place) -> dict[str, Any]:
    x, y = problems.regression(11)
    with place.scope():
        model = problems.compiled(weighted_metrics=["mae"], metrics=["mse"])
    result: dict[str, Any] = {}
    for batch in (2, 3, 4, 7):
        logs = model.evaluate(
            x,
            y,
            sample_weight=problems.weights(11),
            batch_size=batch,
            verbose=0,
            return_dict=True,
        )
        result |= {f"{batch}/{k}": v for k, v in logs.items()}
    return result
