"""Data specs: what is read, what is refused, and with which words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tfmulti import data
from tfmulti.data import spec
from tfmulti.errors import UsageError


@pytest.mark.parametrize(
    ("text", "kind", "argument"),
    [
        ("digits", "digits", ""),
        ("python_source", "python_source", ""),
        ("synthetic", "synthetic", ""),
        ("text:a/*.txt", "text", "a/*.txt"),
        ("images:pictures", "images", "pictures"),
        ("tfrecord:/d/train-*", "tfrecord", "/d/train-*"),
        ("tfds:mnist:3.0.1", "tfds", "mnist:3.0.1"),
    ],
)
def test_parse_splits_at_the_first_colon(text, kind, argument):
    parsed = data.parse(text)
    assert (parsed.kind, parsed.argument) == (kind, argument)
    assert str(parsed) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "digit", "Digits", "csv:a.csv", "digits:3", "text", "text:",
        "images", "tfds:", "tfds:a b", "tfds:../mnist",
    ],
)
def test_what_parse_refuses(text):
    with pytest.raises(UsageError, match="--data="):
        data.parse(text)


def test_unknown_kind_lists_what_is_allowed():
    with pytest.raises(UsageError) as caught:
        data.check("digit", None)
    for kind in ("digits", "images:DIR", "tfrecord:PATTERN", "tfds:NAME"):
        assert kind in caught.value.allowed
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["digits", "python_source", "synthetic"])
def test_data_that_every_machine_has(text):
    data.check(text, None)
    data.check(text, "/no/such/folder")


@pytest.mark.parametrize("kind", ["text", "images", "tfrecord"])
def test_missing_empty_and_present(kind, tmp_path):
    with pytest.raises(UsageError, match=str(tmp_path / "d")):
        data.check(f"{kind}:d", str(tmp_path))
    folder = tmp_path / "d"
    folder.mkdir()
    with pytest.raises(UsageError, match=str(folder)):
        data.check(f"{kind}:d", str(tmp_path))
    (folder / "a.png").write_bytes(b"x")
    data.check(f"{kind}:d", str(tmp_path))
    data.check(f"{kind}:{folder}", None)


def test_files_of_no_bytes_are_refused(tmp_path):
    (tmp_path / "a.txt").touch()
    with pytest.raises(UsageError, match="0 bytes"):
        data.check(f"text:{tmp_path}/*.txt", None)


def test_pattern_that_matches_nothing(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x")
    with pytest.raises(UsageError, match="Nothing matches"):
        data.check(f"tfrecord:{tmp_path}/*.tfrecord", None)


def test_relative_paths_count_from_the_data_dir_or_here(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_bytes(b"x")
    data.check("text:a.txt", str(tmp_path))
    with pytest.raises(UsageError):
        data.check("text:a.txt", None)
    monkeypatch.chdir(tmp_path)
    data.check("text:a.txt", None)


def test_missing_data_dir_is_named():
    with pytest.raises(UsageError, match="--data_dir=/no/such"):
        data.check("text:a.txt", "/no/such")


def test_remote_paths_are_refused_with_a_remedy():
    with pytest.raises(UsageError, match="Mount or copy"):
        data.check("tfrecord:gs://bucket/train-*", None)


def test_tfds_wants_a_prepared_data_set(tmp_path):
    with pytest.raises(UsageError, match="tfds build mnist"):
        data.check("tfds:mnist", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    data.check("tfds:mnist:3.0.1", str(tmp_path))


def test_files_come_sorted_and_without_hidden_ones(tmp_path):
    for name in ("b", "a", ".hidden"):
        (tmp_path / name).write_bytes(b"x")
    files = spec.find_files(data.parse("text:."), str(tmp_path))
    assert [p.name for p in files] == ["a", "b"]


def test_images_are_found_by_suffix_in_class_folders(tmp_path):
    for name in ("cat/1.JPG", "dog/2.png", "dog/notes.txt", ".git/3.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    images = spec.find_images(data.parse("images:."), str(tmp_path))
    assert [p.relative_to(tmp_path) for p in images] == [
        Path("cat/1.JPG"),
        Path("dog/2.png"),
    ]


def test_check_starts_no_tensorflow():
    code = (
        "import sys\n"
        "from tfmulti import data\n"
        "import tfmulti.data.order, tfmulti.data.record_index\n"
        "data.check('digits', None)\n"
        "found = {'tensorflow', 'keras'} & set(sys.modules)\n"
        "sys.exit(str(found) if found else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
