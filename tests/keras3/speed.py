"""Step times under the layer against those of stock Keras, as ratios.

    python -m tests.keras3.speed [--repeats 7]

Two processes, one with stock MirroredStrategy and one with the layer, take
turns with the same model and data on two logical CPU devices, so that what
the machine does besides reaches both. What a step costs is the difference of
a long and a short epoch; ratios are of medians over all turns, of wall time
and of processor time. Stock is what a person has who changes nothing: its own
reduction (a ring; ours on CPUs adds up on one device), one step a call, as
several crash there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

KINDS = ("stock", "layer")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model whose steps are timed.

    Attributes:
        build: Name of the function that builds it.
        batch: Examples in a global batch.
        steps: Steps of the short and of the long epoch.
        per_execution: Steps in one call, under the layer.
    """

    build: str
    batch: int
    steps: tuple[int, int]
    per_execution: int = 1


CASES = {
    "tiny": Case(build="tiny", batch=32, steps=(200, 800)),
    "tiny, 16 steps a call": Case(
        build="tiny", batch=32, steps=(320, 1600), per_execution=16
    ),
    "wide layers": Case(build="wide", batch=128, steps=(40, 120)),
    "9 normalized convolutions": Case(
        build="normalized", batch=32, steps=(10, 40)
    ),
}


def main() -> int:
    """Runs all cases and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.keras3.speed")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--serve", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return _serve(options.serve)
    print(f"{'':28}{'wall':>8}{'cpu':>8}   layer / stock, medians")
    with _Pair() as pair:
        for name in CASES:
            pair.turn(name)  # Traces.
            turns = [pair.turn(name) for _ in range(options.repeats)]
            ratios = [_ratio(turns, i) for i in (0, 1)]
            stock_ms = statistics.median(t["stock"][0] for t in turns) * 1e3
            print(
                f"{name:28}{ratios[0]:8.2f}{ratios[1]:8.2f}   "
                f"stock {stock_ms:.3g} ms",
                flush=True,
            )
    return 0


def _ratio(turns: list[dict[str, list[float]]], index: int) -> float:
    layer, stock = (
        statistics.median(turn[kind][index] for turn in turns)
        for kind in ("layer", "stock")
    )
    return layer / stock


class _Pair:
    """The two processes, while the block runs."""

    def __enter__(self) -> _Pair:
        env = os.environ | {
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "-1",
        }
        self._processes = {
            kind: subprocess.Popen(
                [sys.executable, "-m", "tests.keras3.speed", "--serve", kind],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for kind in KINDS
        }
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def turn(self, name: str) -> dict[str, list[float]]:
        """Times a case in both; gives wall and processor seconds a step."""
        found = {}
        for kind, process in self._processes.items():
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(name + "\n")
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith("RESULT "):
                    found[kind] = json.loads(line.removeprefix("RESULT "))
                    break
            else:
                raise RuntimeError(f"{kind} ended while it timed {name}")
        return found


def _serve(kind: str) -> int:
    """Times the cases that standard input names, until it ends."""
    strategy = _strategy(kind)
    ready: dict[str, Callable[[int], None]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in ready:
            ready[name] = _fit(CASES[name], strategy, kind)
            for steps in CASES[name].steps:
                ready[name](steps)
        print("RESULT " + json.dumps(_step_s(ready[name], CASES[name].steps)))
        sys.stdout.flush()
    return 0


def _step_s(
    fit: Callable[[int], None], steps: tuple[int, int]
) -> list[float]:
    times = []
    for count in steps:
        wall, cpu = time.perf_counter(), time.process_time()
        fit(count)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    (short, long), more = times, steps[1] - steps[0]
    return [(b - a) / more for a, b in zip(short, long, strict=True)]


def _strategy(kind: str) -> Any:
    import tensorflow as tf

    if kind == "layer":
        import tfmulti

        return tfmulti.init("mirrored", replicas=2)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def _fit(case: Case, strategy: Any, kind: str) -> Callable[[int], None]:
    import keras
    import numpy as np
    import tensorflow as tf

    with strategy.scope():
        model = keras.Sequential(list(_layers(case.build)))
        model.compile(
            "adam",
            "mse",
            metrics=["mae"] if case.per_execution == 1 else None,
            steps_per_execution=case.per_execution if kind == "layer" else 1,
        )
    rows = 40 * case.batch
    data = tf.data.Dataset.from_tensor_slices(
        (
            np.random.rand(rows, *model.input_shape[1:]).astype("float32"),
            np.random.rand(rows, *model.output_shape[1:]).astype("float32"),
        )
    )
    data = data.batch(case.batch, drop_remainder=True).cache().repeat()
    data = data.prefetch(8)
    return lambda steps: model.fit(data, steps_per_epoch=steps, verbose=0)


def _layers(build: str) -> Iterator[Any]:
    import keras

    layers = keras.layers
    if build == "tiny":
        yield from (keras.Input((8,)), layers.Dense(4, "relu"))
        yield layers.Dense(1)
    elif build == "wide":
        yield from (keras.Input((256,)), layers.Dense(512, "relu"))
        yield from (layers.Dense(512, "relu"), layers.Dense(10))
    else:
        yield keras.Input((16, 16, 3))
        for _ in range(9):
            yield layers.Conv2D(16, 3, padding="same")
            yield from (layers.BatchNormalization(), layers.ReLU())
        yield from (layers.GlobalAveragePooling2D(), layers.Dense(10))


if __name__ == "__main__":
    sys.exit(main())
