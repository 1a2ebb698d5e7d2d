"""A folder is one living run's; names never meet; what is wrong is one line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tfmulti.errors import UsageError
from tfmulti.launch import claimed

HOLD = """
import sys
from tfmulti.launch import claimed
with claimed(sys.argv[1], automatic=sys.argv[2] == "automatic", say=print) as f:
    print(f, flush=True)
    sys.stdin.read()
"""


def claim(path, automatic=False):
    return claimed(str(path), automatic=automatic, say=pytest.fail)


def holder(path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_automatic_names_never_meet(tmp_path):
    """Many at once: each gets a folder of its own."""
    path = tmp_path / "runs" / "name-time"
    holders = [holder(path, "automatic") for _ in range(6)]
    try:
        names = [h.stdout.readline().strip() for h in holders]
    finally:
        for one in holders:
            one.communicate("", timeout=20)
    assert sorted(names) == sorted(
        [str(path), *(f"{path}-{number}" for number in range(2, 7))]
    )
    assert sorted(os.listdir(path.parent)) == sorted(
        name.rpartition("/")[2] for name in names
    )


def test_a_living_run_keeps_others_out_until_it_is_gone(tmp_path):
    first = holder(tmp_path / "r", "explicit")
    try:
        assert first.stdout.readline().strip() == str(tmp_path / "r")
        with pytest.raises(UsageError, match="still lives"):
            with claim(tmp_path / "r"):
                pytest.fail("shared")
    finally:
        first.kill()  # As by the kernel: nothing tidies up.
        first.communicate(timeout=20)
    with claim(tmp_path / "r") as folder:
        assert folder == str(tmp_path / "r")


def test_a_claim_ends_with_its_context(tmp_path):
    for _ in range(2):
        with claim(tmp_path / "r"):
            assert (tmp_path / "r").is_dir()


@pytest.mark.parametrize("automatic", [False, True])
def test_where_no_folder_can_be_made(tmp_path, automatic):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="a file is in the way") as caught:
        with claim(tmp_path / "file" / "r", automatic):
            pytest.fail("made")
    assert caught.value.exit_code == 2


def test_a_file_system_without_locks_is_said(tmp_path, monkeypatch):
    def flock(descriptor, how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", flock)
    said: list[str] = []
    with claimed(str(tmp_path), automatic=False, say=said.append):
        (line,) = said
    assert "cannot be locked (Function not implemented)" in line


def test_a_full_disk_is_found_before_the_start(tmp_path, monkeypatch):
    def pwrite(descriptor, data, offset):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", pwrite)
    with pytest.raises(UsageError, match="No space left"):
        with claim(tmp_path / "r"):
            pytest.fail("claimed")
