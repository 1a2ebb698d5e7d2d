"""nvidia-smi's and the driver's words are read right."""

from __future__ import annotations

import subprocess

import pytest

from tfmulti.hardware.gpus import (
    QUERY,
    Gpu,
    find_gpus,
    parse_nvidia_smi,
    parse_proc_information,
)

TWO = """\
0, GPU-9221d5d1-b60b-a624-bf14-0a1819cfda3b, NVIDIA H100 80GB HBM3, 81559
1, GPU-0e7fd5a2-6a8c-1d3f-9c11-5b21f0a7e9d4, NVIDIA H100 80GB HBM3, 81559
"""
SHARED_MEMORY = "0, GPU-1f2e3d4c-0000-1111-2222-333344445555, GB10, [N/A]"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
    "driver. Make sure that the latest NVIDIA driver is installed and "
    "running."
)
# The driver's own page of a GPU (version 535).
INFORMATION = """\
Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 10
GPU UUID: \t GPU-9221d5d1-b60b-a624-bf14-0a1819cfda3b
Video BIOS: \t 96.00.99.00.01
Bus Type: \t PCIe
DMA Size: \t 52 bits
Bus Location: \t 0000:62:00.0
Device Minor: \t 5
"""


def test_two_gpus():
    first, second = parse_nvidia_smi(TWO)
    assert first == Gpu(
        index=0,
        uuid="GPU-9221d5d1-b60b-a624-bf14-0a1819cfda3b",
        name="NVIDIA H100 80GB HBM3",
        memory_bytes=81559 * 2**20,
    )
    assert second.index == 1


def test_memory_that_the_driver_does_not_tell():
    (gpu,) = parse_nvidia_smi(SHARED_MEMORY)
    assert (gpu.name, gpu.memory_bytes) == ("GB10", None)


@pytest.mark.parametrize("text", ["", "No devices were found\n"])
def test_no_gpus(text):
    assert parse_nvidia_smi(text) == ()


def test_what_is_not_a_gpu_is_not_read_as_one():
    found = find_gpus(run=lambda command: NO_DRIVER)
    assert found.gpus == ()
    assert found.problem is not None


def test_the_query_is_what_the_parser_reads():
    asked = []

    def run(command):
        asked.append(tuple(command))
        return TWO

    assert len(find_gpus(run=run).gpus) == 2
    assert asked == [QUERY]


def test_a_failing_driver_is_a_problem_and_not_silence():
    def run(command):
        raise subprocess.SubprocessError(NO_DRIVER)

    assert "couldn't communicate" in str(find_gpus(run=run).problem)


def test_without_nvidia_smi_the_driver_files_are_read(tmp_path):
    for bus in ("0000:62:00.0", "0000:0a:00.0"):
        folder = tmp_path / bus
        folder.mkdir()
        (folder / "information").write_text(INFORMATION.replace("H100", bus))

    def run(command):
        raise FileNotFoundError(command[0])

    found = find_gpus(run=run, proc_files=str(tmp_path))
    assert [gpu.index for gpu in found.gpus] == [0, 1]
    assert found.gpus[0].name == "NVIDIA 0000:0a:00.0 80GB HBM3"
    assert find_gpus(run=run, proc_files=str(tmp_path / "none")).gpus == ()


def test_driver_file():
    gpu = parse_proc_information(INFORMATION, 3)
    assert gpu == Gpu(
        index=3,
        uuid="GPU-9221d5d1-b60b-a624-bf14-0a1819cfda3b",
        name="NVIDIA H100 80GB HBM3",
        memory_bytes=None,
    )


def test_a_program_that_exits_with_an_error_is_a_problem(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho no driver here\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert find_gpus().problem == "nvidia-smi failed: no driver here"
