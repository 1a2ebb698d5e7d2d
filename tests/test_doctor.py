"""The doctor looks at machines, recorded or at hand, and at the fixes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tfmulti import doctor
from tfmulti.errors import TfmultiError

MACHINES = Path(__file__).parent / "diagnose" / "machines"


def _facts(**changes: Any) -> dict[str, Any]:
    fix = {
        "name": "losses",
        "fault": "masks weigh wrongly",
        "upstream": "https://example.org/1",
        "versions": "keras 3.15",
        "changed": [],
    }
    facts = {
        "keras": "3.15.1",
        "tensorflow": "2.21.0",
        "verified": ["3.15"],
        "fixes": [fix | changes.pop("fix", {})],
    }
    return facts | changes


def test_all_is_well():
    text = doctor.keras_text(_facts())
    assert "Keras 3.15.1 on TensorFlow 2.21.0: verified" in text
    assert "losses         fits" in text
    assert "https://example.org/1" in text


def test_a_changed_target_is_named():
    text = doctor.keras_text(
        _facts(keras="3.16.0", fix={"changed": ["keras.src.losses.loss.f"]})
    )
    assert "not verified" in text
    assert "does not fit" in text
    assert "changed: keras.src.losses.loss.f" in text
    assert "Left out on this version: losses." in text


def test_a_probe_that_fails_is_one_message():
    def run(command, **kwargs):
        return subprocess.CompletedProcess(command, 1, "", "a\nImportError: b")

    with pytest.raises(TfmultiError, match="ImportError: b"):
        doctor.probe("keras_fixes", run)


def test_a_probe_that_hangs_is_one_message():
    def run(command, timeout, **kwargs):
        raise subprocess.TimeoutExpired(command, timeout)

    with pytest.raises(TfmultiError, match="no answer within 120 s"):
        doctor.probe("keras_fixes", run)


def test_a_program_that_fails():
    """nvidia-smi says why; what others could not find out is unknown."""

    def run(command, **kwargs):
        return subprocess.CompletedProcess(command, 9, "", "no driver\n")

    assert doctor.run_command(["nvidia-smi"], run) == "no driver\n"
    assert doctor.run_command(["timedatectl"], run) is None
    assert doctor.run_command(["no-such-program-here"]) is None


def test_a_recorded_machine(capsys):
    path = MACHINES / "rtx_3090.txt"
    assert doctor.main(["--recording", str(path)]) == 1
    text = capsys.readouterr().out
    assert "WARNING: GPU 0 [power_capped]" in text
    assert text.endswith("1 warning, 1 note\n")


def test_a_healthy_machine_exits_with_zero(capsys):
    path = MACHINES / "dgx_a100.txt"
    assert doctor.main(["--recording", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


@pytest.mark.parametrize("text", [None, "not a recording"])
def test_no_recording_is_wrong_usage(tmp_path, capsys, text):
    path = tmp_path / "machine.txt"
    if text is not None:
        path.write_text(text)
    assert doctor.main(["--recording", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


def test_the_real_probe_of_the_fixes(capsys):
    code = doctor.main(["--keras", "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert code == 0, [f for f in facts["fixes"] if f["changed"]]
    names = {fix["name"] for fix in facts["fixes"]}
    assert {"engine", "losses", "optimizers", "randomness"} <= names


def test_this_machine(tmp_path, capsys):
    """What is said of the machine at hand agrees with Python's own answers."""
    path = tmp_path / "machine.txt"
    code = doctor.main(["--record", str(path), "--json"])
    report = json.loads(capsys.readouterr().out)
    grave = [f for f in report["findings"] if f["severity"] != "note"]
    assert code == int(bool(grave))
    assert report["software"]["tensorflow"] == metadata.version("tensorflow")
    assert report["software"]["keras"] == metadata.version("keras")
    assert report["software"]["problem"] is None
    assert set(report["software"]["libraries"]) == {"cudart", "cudnn", "nccl"}
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = soft == resource.RLIM_INFINITY
    assert report["host"]["open_files"] == (None if unlimited else soft)
    affinity = len(os.sched_getaffinity(0))
    assert report["host"]["cores"]["affinity"] == affinity
    shm = os.statvfs("/dev/shm")
    assert report["host"]["shm_bytes"] == shm.f_blocks * shm.f_frsize
    # The recording says the same again.
    assert doctor.main(["--recording", str(path), "--json"]) == code
    assert json.loads(capsys.readouterr().out) == report
