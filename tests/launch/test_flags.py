"""The command line is parted where the script begins, and nowhere else."""

from __future__ import annotations

import pytest
from absl import flags as absl_flags

from tfmulti.errors import UsageError
from tfmulti.launch import Script
from tfmulti.launch.flags import Flag, help_text, parse, split

TABLE = tuple(
    Flag(name=name, kind=kind, value="X", group=group, help=f"About {name}.")
    for name, kind, group in (
        ("name", "text", "A"),
        ("count", "whole", "A"),
        ("rate", "number", "B"),
        ("dry_run", "switch", "B"),
        ("nccl", "pairs", "A"),
        ("help", "switch", "B"),
    )
)


def path(*words: str) -> Script:
    return Script(path=words[0], argv=tuple(words[1:]))


@pytest.mark.parametrize(
    ("argv", "own", "script"),
    [
        ("", "", None),
        ("--name x", "--name x", None),
        ("train.py", "", path("train.py")),
        ("--name x train.py", "--name x", path("train.py")),
        ("--name=x train.py", "--name=x", path("train.py")),
        ("-name x train.py", "-name x", path("train.py")),
        ("--dry_run train.py", "--dry_run", path("train.py")),
        ("--nodry_run train.py", "--nodry_run", path("train.py")),
        ("--dry_run=true train.py", "--dry_run=true", path("train.py")),
        ("--flagfile f train.py", "--flagfile f", path("train.py")),
        ("--nccl a=b --nccl c=d t.py", "--nccl a=b --nccl c=d", path("t.py")),
        ("--count -1 t.py", "--count -1", path("t.py")),
        ("--unknown t.py", "--unknown", path("t.py")),
        ("t.py --name y --dry_run", "", path("t.py", "--name", "y",
                                             "--dry_run")),
        ("t.py -m x -- --count", "", path("t.py", "-m", "x", "--",
                                          "--count")),
        ("--count 2 -- t.py a", "--count 2", path("t.py", "a")),
        ("--count 2 --", "--count 2", None),
        ("-- -m a.b --", "", Script(module="a.b", argv=("--",))),
        ("-m pkg.mod --name y", "", Script(module="pkg.mod",
                                           argv=("--name", "y"))),
        ("--count 2 -m m", "--count 2", Script(module="m")),
        ("--name -m", "--name -m", None),
        ("-h", "-h", None),
        ("- x", "", path("-", "x")),
    ],
)
def test_split(argv, own, script):
    assert split(argv.split(), TABLE) == (own.split(), script)


def test_a_scripts_words_are_not_touched():
    words = ["t.py", "", "two words", "--x=é", "-", "--"]
    assert split(words, TABLE)[1] == path(*words)


def test_module_without_a_name():
    with pytest.raises(UsageError, match="-m"):
        split(["-m"], TABLE)


def test_parse_kinds():
    values = parse(
        "--name x --count=3 --rate 1e-3 --dry_run --nccl a=1 --nccl b=2"
        .split(),
        TABLE,
    )
    assert values == {
        "name": "x",
        "count": 3,
        "rate": 1e-3,
        "dry_run": True,
        "nccl": ["a=1", "b=2"],
        "help": False,
    }
    assert parse(["-h"], TABLE)["help"] is True
    assert parse([], TABLE)["count"] is None


def test_flagfile(tmp_path):
    file = tmp_path / "flags"
    file.write_text("# ours\n--count=3\n--dry_run\n")
    values = parse([f"--flagfile={file}", "--name", "x"], TABLE)
    assert (values["count"], values["dry_run"], values["name"]) == (
        3, True, "x"
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["--nmae", "x"],
        ["--count", "three"],
        ["--count"],
        ["--rate=fast"],
        ["--dry_run=perhaps"],
        ["--flagfile=/nowhere/at/all"],
    ],
)
def test_wrong_flags_are_usage_errors(argv):
    with pytest.raises(UsageError) as caught:
        parse(argv, TABLE)
    assert "\n" not in str(caught.value)


def test_a_script_in_a_flagfile_is_refused(tmp_path):
    file = tmp_path / "flags"
    file.write_text("train.py\n")
    with pytest.raises(UsageError, match="train.py"):
        parse([f"--flagfile={file}"], TABLE)


def test_the_global_flags_are_left_alone():
    before = set(absl_flags.FLAGS)
    parse(["--name", "x"], TABLE)
    assert set(absl_flags.FLAGS) == before


def test_help_lists_each_flag_under_its_group():
    text = help_text("usage", TABLE, "closing")
    assert text.index("A:") < text.index("--count") < text.index("B:")
    assert text.index("B:") < text.index("--rate")
    for flag in TABLE:
        assert f"--{flag.name} " in text and flag.help in text
    assert max(map(len, text.splitlines())) <= 80
