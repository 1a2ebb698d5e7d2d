"""What the chief leaves when training is over, and the closing summary.

The model is saved first, so that nothing that fails later can lose it. It is
then read back outside any strategy: what it shows is what the file can do, on
one device, as whoever loads it next will have it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import keras

from tfmulti.config import Experiment
from tfmulti.data import DataSplits
from tfmulti.launch.job import Job
from tfmulti.measure import (
    METRICS,
    EpochRecord,
    RunSummary,
    steady_rate,
    steady_step_ms,
    summary_text,
)
from tfmulti.measure.curves import draw_curves
from tfmulti.train.run_dir import CURVES, MODEL, SUMMARY, write_json
from tfmulti.train.task import Shown, Task


def leave_results(
    job: Job,
    task: Task,
    model: keras.Model,
    splits: DataSplits,
    *,
    epochs: Sequence[EpochRecord],
    weights_sha256: str,
    start_s: float,
) -> RunSummary:
    """Writes model, samples, curves and summary; prints the summary.

    Args:
        job: What was run.
        task: Knows what the model can show.
        model: As trained, under the job's strategy.
        splits: The data.
        epochs: The records of the run.
        weights_sha256: Checksum of the weights.
        start_s: When the worker started, by `time.monotonic`.
    """
    folder = Path(job.run_dir)
    experiment = job.experiment
    assert experiment is not None
    model.save(folder / MODEL)
    saved = keras.saving.load_model(folder / MODEL, compile=False)
    shown = task.show(saved, job, splits)
    draw_curves(epochs, folder / CURVES, title=_title(job, experiment))
    summary = RunSummary(
        experiment=experiment.name,
        strategy=job.strategy,
        workers=job.workers,
        replicas=job.replicas,
        device=job.device,
        precision=experiment.precision,
        parameters=model.count_params(),
        epochs=len(epochs),
        steps=epochs[-1].step,
        examples_per_s=steady_rate(epochs),
        step_ms=steady_step_ms(epochs),
        metrics=task.result(epochs[-1].metrics) | dict(shown.metrics),
        wall_s=time.monotonic() - start_s,
        weights_sha256=weights_sha256,
        run_dir=job.run_dir,
        files=_files(shown),
    )
    write_json(folder / SUMMARY, summary.to_json())
    print(f"\n{summary_text(summary)}", flush=True)
    return summary


def _files(shown: Shown) -> dict[str, str]:
    return {
        "model": MODEL,
        **shown.files,
        "curves": CURVES,
        "metrics": METRICS,
        "summary": SUMMARY,
    }


def _title(job: Job, experiment: Experiment) -> str:
    return (
        f"{experiment.name}: {job.strategy}, {job.replicas} x {job.device}, "
        f"global batch {experiment.global_batch_size}, {experiment.precision}"
    )
