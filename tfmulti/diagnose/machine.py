"""The machine as one frozen record, read from a recording."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tfmulti.diagnose import recording as recordings
from tfmulti.diagnose.recording import Recording
from tfmulti.hardware import smi_query, topology
from tfmulti.hardware.gpus import Gpu, GpuSearch
from tfmulti.hardware.host import Host, parse_host
from tfmulti.hardware.smi_query import GpuState, SmiReport
from tfmulti.hardware.topology import Matrix, NvLinks
from tfmulti.hardware.visible import VisibleGpus, visible_gpus


@dataclass(frozen=True, kw_only=True)
class Library:
    """One of NVIDIA's libraries.

    Attributes:
        needs: The least version that TensorFlow declares, "2.27.7".
        found: The version that loads; None: it does not load.
    """

    needs: str
    found: str | None


@dataclass(frozen=True, kw_only=True)
class Software:
    """TensorFlow as it was built, and what it finds; None: not known.

    Attributes:
        tensorflow: Its version.
        keras: Keras's version.
        verified: Whether Keras and TensorFlow are versions that tfmulti's
            fixes were verified with.
        cuda_build: Whether it was built for NVIDIA GPUs.
        cuda: CUDA's version that it was built with.
        cudnn: Likewise cuDNN's.
        capabilities: Compute capabilities with machine code of their own or
            code to translate: ("sm_60", ..., "compute_90").
        gpus: The GPUs that it finds.
        libraries: By name: "cudart", "cudnn", "nccl".
        problem: Why it could not be asked, in words.
    """

    tensorflow: str | None = None
    keras: str | None = None
    verified: bool | None = None
    cuda_build: bool | None = None
    cuda: str | None = None
    cudnn: str | None = None
    capabilities: tuple[str, ...] = ()
    gpus: int | None = None
    libraries: Mapping[str, Library] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class Machine:
    """All that is known of a machine.

    Attributes:
        driver_version: The NVIDIA driver's; None where it does not answer.
        cuda_version: The newest CUDA that the driver speaks.
        gpus: The GPUs, by index.
        visible: Those that CUDA_VISIBLE_DEVICES leaves.
        driver_problem: What nvidia-smi said instead of an answer.
        paths: How GPUs and NICs are joined.
        peers: Which GPUs may read each other's memory.
        nvlinks: The NVLinks of each GPU that has some.
        host: The host around them.
        software: TensorFlow.
    """

    driver_version: str | None = None
    cuda_version: str | None = None
    gpus: tuple[GpuState, ...] = ()
    visible: VisibleGpus = VisibleGpus()
    driver_problem: str | None = None
    paths: Matrix | None = None
    peers: Matrix | None = None
    nvlinks: tuple[NvLinks, ...] = ()
    host: Host = field(default_factory=Host)
    software: Software = field(default_factory=Software)


def read_machine(recording: Recording) -> Machine:
    """Reads a recording."""

    def said(command: str) -> str | None:
        return recording.get(f"$ {command}")

    def output(command: tuple[str, ...]) -> str:
        return recording.get(recordings.section(command), "")

    report, problem = _report(output(smi_query.COMMAND))
    return Machine(
        driver_version=report.driver_version,
        cuda_version=report.cuda_version,
        gpus=report.gpus,
        visible=_visible(recording, report),
        driver_problem=problem,
        paths=topology.parse_matrix(output(topology.PATHS_COMMAND)),
        peers=topology.parse_matrix(output(topology.PEERS_COMMAND)),
        nvlinks=topology.parse_nvlink(output(topology.NVLINK_COMMAND)),
        host=parse_host(recording.get, said),
        software=_software(recording.get(recordings.PROBE_SECTION, "")),
    )


def _report(text: str) -> tuple[SmiReport, str | None]:
    none = SmiReport(driver_version=None, cuda_version=None, gpus=())
    if not text.strip():
        return none, None
    try:
        return smi_query.parse_query(text), None
    except ValueError as error:
        return none, str(error)


def _visible(recording: Recording, report: SmiReport) -> VisibleGpus:
    lines = recording.get(recordings.ENVIRONMENT, "").splitlines()
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    gpus = tuple(
        Gpu(
            index=gpu.index,
            uuid=gpu.uuid,
            name=gpu.name,
            memory_bytes=gpu.memory_bytes,
        )
        for gpu in report.gpus
    )
    return visible_gpus(env, lambda: GpuSearch(gpus=gpus))


def _software(text: str) -> Software:
    if not text.strip():
        return Software()
    try:
        facts = json.loads(text)
    except ValueError:
        return Software(problem=text.strip().splitlines()[-1])
    build = facts["build"]
    return Software(
        tensorflow=facts["tensorflow"],
        keras=facts["keras"],
        verified=facts["verified"],
        cuda_build=build.get("is_cuda_build"),
        cuda=build.get("cuda_version"),
        cudnn=build.get("cudnn_version"),
        capabilities=tuple(build.get("cuda_compute_capabilities", ())),
        gpus=facts["gpus"],
        libraries={
            name: Library(**library)
            for name, library in facts["libraries"].items()
        },
    )
