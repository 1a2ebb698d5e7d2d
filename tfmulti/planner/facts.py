"""GPUs, models and published training measurements, read from the tables.

    hardware/data/gpus.csv        datasheet figures
    hardware/data/works.csv       what one example costs, by model and input
    hardware/data/throughput.csv  published measurements
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources

from tfmulti.errors import UsageError

Row = Mapping[str, str]

# Under the first, tensor cores serve float32 work as TF32 where there are
# any; FP32/TF32 rows do not say which was meant, and frameworks default so.
PEAKS: Mapping[str, tuple[str, ...]] = {
    "FP32": ("fp32_tflops",),
    "TF32": ("tf32_dense_tflops", "fp32_tflops"),
    "FP32/TF32": ("tf32_dense_tflops", "fp32_tflops"),
    "FP16": ("fp16_dense_fp32acc_tflops", "fp32_tflops"),
    "AMP": ("fp16_dense_fp32acc_tflops", "fp32_tflops"),
    "BF16": ("bf16_dense_tflops", "fp32_tflops"),
}


@dataclass(frozen=True, kw_only=True)
class GpuModel:
    """The datasheet of a GPU.

    Attributes:
        tflops: Dense peak by precision, with float32 accumulation.
        vram_gb, bandwidth_gbs, nvlink_gbs: Memory, its bandwidth, and the
            sum of both directions of all NVLinks (0: none).
    """

    name: str
    arch: str
    segment: str
    vram_gb: float
    bandwidth_gbs: float
    nvlink_gbs: float
    pcie_gen: int
    tdp_w: float
    tflops: Mapping[str, float]
    source: str


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a model costs for one unit (an image, a sequence, a token)."""

    model: str
    input: str
    family: str
    params: int
    gmacs_per_unit: float
    unit: str
    units_per_item: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Setup:
    """GPUs, how they are joined, and how a model is trained on them."""

    gpu: GpuModel
    work: Work
    precision: str
    gpus: int = 1
    hosts: int = 1
    intra: str = "not stated"
    inter: str = "none"
    comm: str = "NCCL"
    replica_batch_size: float = 32
    accumulation: int = 1
    real_data: bool = True

    def __post_init__(self) -> None:
        if self.hosts < 1 or self.gpus < 1 or self.gpus < self.hosts:
            raise UsageError(
                received=f"{self.gpus} GPUs on {self.hosts} hosts",
                allowed="at least one host, and one GPU on each",
                remedy="--gpus counts the GPUs of all hosts together.",
            )


def table(name: str) -> list[dict[str, str]]:
    """Reads a table of `tfmulti/hardware/data`."""
    folder = resources.files("tfmulti.hardware") / "data"
    with (folder / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def gpus() -> dict[str, GpuModel]:
    """Gives every GPU by its name."""
    return {row["gpu"]: _gpu(row) for row in table("gpus")}


def works() -> list[Work]:
    """Gives what models cost."""
    return [
        Work(
            model=row["model"],
            input=row["input"],
            family=row["family"],
            params=int(row["params"]),
            gmacs_per_unit=float(row["fwd_gmacs_per_unit"]),
            unit=row["unit"],
            units_per_item=float(row["units_per_batch_item"]),
            source=row["source"],
        )
        for row in table("works")
    ]


def find_work(known: Iterable[Work], model: str, data: str) -> Work | None:
    """Finds a model's cost for an input such as "SQuAD seq 384"."""
    named = [w for w in known if w.model == model]
    fitting = [w for w in named if w.input in data]
    if not fitting and "packed" in data:
        fitting = [w for w in named if w.input == "seq 512"]
    return fitting[0] if fitting else None


def _gpu(row: Row) -> GpuModel:
    return GpuModel(
        name=row["gpu"],
        arch=row["arch"].split()[0],
        segment=row["segment"],
        vram_gb=float(row["vram_gb"]),
        bandwidth_gbs=float(row["mem_bw_gbs"]),
        nvlink_gbs=float(row["nvlink_total_gbs"] or 0),
        pcie_gen=int(row["pcie_gen"]),
        tdp_w=float(row["tdp_w"]),
        tflops={
            precision: next(
                float(row[column])
                for column in columns
                if float(row[column] or 0)
            )
            for precision, columns in PEAKS.items()
        },
        source=row["source"],
    )
