"""Fault: `fit`, `evaluate`, `predict` and the `*_on_batch` methods.

`_maybe_symbolic_build` takes a batch and averages it over replicas (crashes
on several hosts, odd batches, strings; loses a generator's batch); logs are
reduced over an axis that scalars do not have; `steps_per_execution` nests a
collective where its key is lost; the last partial batch is weighed wrongly;
`*_on_batch` gives every replica the whole batch.
"""

from __future__ import annotations

from tfmulti.keras3 import trainer
from tfmulti.keras3.patching import Fix, Patch

_TRAINER = "keras.src.backend.tensorflow.trainer"

FIX = Fix(
    name="engine",
    fault="fit crashes on several hosts and odd batches, and weighs uneven "
    "parts of a batch wrongly",
    upstream="https://github.com/keras-team/keras/issues/20585",
    versions="keras 3.15",
    patches=(
        Patch(
            target=f"{_TRAINER}:TensorFlowTrainer",
            attribute="make_train_function",
            wrap=trainer.make_step_function("train_step"),
            digest="32ed2497a43f",
        ),
        Patch(
            target=f"{_TRAINER}:TensorFlowTrainer",
            attribute="make_test_function",
            wrap=trainer.make_step_function("test_step"),
            digest="db81912606ca",
        ),
        Patch(
            target=f"{_TRAINER}:TensorFlowTrainer",
            attribute="make_predict_function",
            wrap=trainer.make_predict_function,
            digest="1eaed75e3c92",
        ),
        Patch(
            target=f"{_TRAINER}:TensorFlowTrainer",
            attribute="_maybe_symbolic_build",
            wrap=trainer.maybe_symbolic_build,
            digest="b0ca9a63ed29",
        ),
        Patch(
            target=_TRAINER,
            attribute="TFEpochIterator",
            wrap=trainer.epoch_iterator,
            digest="a39b27f76138",
        ),
        Patch(
            target="keras.src.trainers.trainer:Trainer",
            attribute="_get_metrics_result_or_logs",
            wrap=trainer.metrics_result_or_logs,
            digest="d47bbf7626cb",
        ),
        Patch(
            target="keras.src.trainers.trainer:Trainer",
            attribute="get_metrics_result",
            wrap=trainer.get_metrics_result,
            digest="4214640f89e4",
        ),
    ),
)
