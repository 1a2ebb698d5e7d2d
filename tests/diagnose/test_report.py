"""Reports say what the machine is and what is wrong with it."""

from __future__ import annotations

import json

import pytest

from tests.diagnose.recorded import base
from tfmulti import diagnose
from tfmulti.diagnose.findings import Finding, by_severity, gpu_names
from tfmulti.diagnose.layout import near_nics, numa_groups, switch_groups
from tfmulti.diagnose.report import verdict


def _finding(severity: str, code: str = "x") -> Finding:
    return Finding(
        code=code,
        severity=severity,
        subject="GPU 1",
        evidence="it is slow",
        remedy="Mend it.",
    )


def test_text():
    machine = diagnose.read_machine(base("dgx_a100"))
    text = diagnose.as_text(machine, [_finding("warning")])
    assert "GPUs 0-7    NVIDIA A100-SXM4-80GB, 80 GiB, PCIe 4.0 x16" in text
    assert "one switch  GPUs 0-1; GPUs 2-3; GPUs 4-5; GPUs 6-7" in text
    assert "NUMA nodes  3: GPUs 0-1; 1: GPUs 2-3;" in text
    assert "near NICs   GPUs 0-1: mlx5_0, mlx5_1;" in text
    assert "WARNING: GPU 1 [x]\n    it is slow\n    -> Mend it." in text
    assert text.endswith("1 warning")
    assert max(map(len, text.splitlines())) <= 80


def test_json():
    machine = diagnose.read_machine(base("dgx_h100"))
    report = json.loads(diagnose.as_json(machine, [_finding("note")]))
    assert report["findings"] == [
        {
            "code": "x",
            "severity": "note",
            "subject": "GPU 1",
            "evidence": "it is slow",
            "remedy": "Mend it.",
        }
    ]
    assert len(report["gpus"]) == 8
    assert report["software"]["libraries"]["nccl"]["found"] == "2.27.7"
    assert report["host"]["cores"]["affinity"] == 224


def test_verdicts():
    findings = [_finding(s) for s in ("note", "error", "note")]
    assert verdict(findings) == "1 error, 2 notes"
    assert verdict([]) == "Nothing wrong was found."


def test_the_gravest_come_first_else_in_order():
    findings = [
        _finding("note", "a"),
        _finding("error", "b"),
        _finding("warning", "c"),
        _finding("error", "d"),
    ]
    assert [f.code for f in by_severity(findings)] == ["b", "d", "c", "a"]


def test_a_severity_is_one_of_three():
    with pytest.raises(ValueError, match="fatal"):
        _finding("fatal")


@pytest.mark.parametrize(
    ("indices", "name"),
    [
        ([3], "GPU 3"),
        ([0, 1, 2], "GPUs 0-2"),
        ([7, 0, 1, 5], "GPUs 0-1, 5, 7"),
    ],
)
def test_names_of_gpus(indices, name):
    assert gpu_names(indices) == name


def test_layout_of_a_machine_with_a_nic_for_each_gpu():
    paths = diagnose.read_machine(base("dgx_h100")).paths
    assert paths is not None
    assert switch_groups(paths) == []
    assert numa_groups(paths) == {"0": [0, 1, 2, 3], "1": [4, 5, 6, 7]}
    assert near_nics(paths) == {i: [f"mlx5_{i}"] for i in range(8)}
