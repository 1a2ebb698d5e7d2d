"""The doctor lists each fix and says which do not fit."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tfmulti import doctor
from tfmulti.errors import TfmultiError


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


def test_it_wants_to_know_what_to_look_at(capsys):
    with pytest.raises(SystemExit) as ended:
        doctor.main([])
    assert ended.value.code == 2
    assert "--keras" in capsys.readouterr().err


def test_the_real_probe(capsys):
    code = doctor.main(["--keras", "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert code == 0, [f for f in facts["fixes"] if f["changed"]]
    names = {fix["name"] for fix in facts["fixes"]}
    assert {"engine", "losses", "optimizers", "randomness"} <= names
