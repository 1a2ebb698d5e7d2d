"""For each recorded machine the doctor names what is wrong, nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.diagnose.recorded import Case, base, cases
from tfmulti import diagnose
from tfmulti.diagnose import checks

CASES = cases()


def _codes() -> set[str]:
    """Lists the codes of all findings that the checks can give."""
    folder = Path(checks.__file__).parent
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    return set(re.findall(r'code="(\w+)"', text))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_findings(case: Case):
    machine = diagnose.read_machine(case.recording)
    found = diagnose.diagnose(machine)
    said = [(f.code, f.severity, f.subject) for f in found]
    assert said == case.expected
    grave = any(severity != "note" for _, severity, _ in case.expected)
    assert diagnose.exit_code(found) == int(grave)


def test_every_finding_is_shown_by_a_machine():
    shown = {code for case in CASES for code, _, _ in case.expected}
    assert shown == _codes()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_recording_survives_being_written(case: Case):
    again = diagnose.load(diagnose.dump(case.recording))
    assert diagnose.read_machine(again) == diagnose.read_machine(
        case.recording
    )


@pytest.mark.parametrize("section", sorted(base("dgx_a100")))
def test_what_is_not_known_gives_no_finding(section):
    """A healthy machine of which a part cannot be read stays healthy."""
    known = dict(base("dgx_a100"))
    del known[section]
    findings = diagnose.diagnose(diagnose.read_machine(known))
    codes = [finding.code for finding in findings]
    # Without nvidia-smi only TensorFlow tells that there are GPUs.
    assert codes == (["driver_silent"] if "-q -x" in section else [])


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("pcie_x8", "pcie_width", ["x8", "x16"]),
        ("nvlink_down", "nvlink_down", ["17 of 18", "down: 0"]),
        ("nvlink_all_down", "nvlink_down", ["0 of 12"]),
        ("power_capped_rtx_3090", "power_capped", ["200 W", "350 W", "57%"]),
        ("cloud_a10g", "driver_too_old", ["515.105.01", "11.7", "12.5.1"]),
        ("docker_shm", "shm_small", ["64 MiB", "8 GPUs"]),
        ("container_limits", "cores_few", ["8 usable", "quota", "has 256"]),
        ("pinned_to_few_cores", "cores_few", ["16 usable", "placed on 16"]),
        ("container_limits", "host_memory", ["256 GiB", "limit", "640 GiB"]),
        ("low_memlock", "memlock_low", ["8 MiB", "10 InfiniBand"]),
        ("throttling_heat", "throttled", ["hw_thermal_slowdown", "90 C"]),
        ("ecc_errors", "ecc_uncorrected", ["2 uncorrected"]),
        ("driver_mismatch", "driver_unreachable", ["version mismatch"]),
        ("driver_missing", "driver_missing", ["2 NVIDIA device(s)"]),
        ("mixed_gpus", "gpus_mixed", ["1 x NVIDIA GeForce RTX 3080 (10 GiB)"]),
        ("acs_and_iommu", "acs_on", ["3 PCI bridge(s)", "01:10.0"]),
        ("visible_devices", "visible_devices_wrong", ["'8'", "8 GPU(s)"]),
    ],
)
def test_the_evidence_has_the_values(name, code, words):
    recording = next(case.recording for case in CASES if case.name == name)
    findings = diagnose.diagnose(diagnose.read_machine(recording))
    evidence = next(f.evidence for f in findings if f.code == code)
    assert [word for word in words if word not in evidence] == []
