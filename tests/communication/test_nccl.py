"""NCCL's settings: every key, every kind of value, every refusal."""

from __future__ import annotations

import dataclasses

import pytest

from tfmulti.communication import Nccl
from tfmulti.communication.nccl import find_setting
from tfmulti.communication.nccl_table import OLDEST_NCCL, SETTINGS
from tfmulti.communication.nccl_values import Choice, Flag, Tokens, Whole
from tfmulti.errors import UsageError

FIELDS = [field.name for field in dataclasses.fields(Nccl)]


def _example(kind) -> str:
    if isinstance(kind, Flag):
        return "1"
    if isinstance(kind, Whole):
        return str(kind.largest)
    if isinstance(kind, (Choice, Tokens)):
        return kind.words[-1]
    return "name0"


def test_table_and_record_have_the_same_fields_in_the_same_order():
    assert [setting.field for setting in SETTINGS] == FIELDS


def test_every_variable_is_there_once_and_is_nccls():
    names = [s.variable for s in SETTINGS] + [
        alias for s in SETTINGS for alias in s.aliases
    ]
    assert len(names) == len(set(names))
    assert all(name.startswith("NCCL_") for name in names)


def test_every_setting_is_read_by_the_oldest_nccl_that_tensorflow_takes():
    assert all(setting.since <= OLDEST_NCCL for setting in SETTINGS)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.field)
def test_field_name_and_nccl_name_mean_the_same(setting):
    text = _example(setting.kind)
    by_field = Nccl.from_pairs([f"{setting.field}={text}"])
    by_variable = Nccl.from_pairs([f"{setting.variable}={text}"])
    assert by_field == by_variable
    assert by_field.variables() == {setting.variable: text}
    for alias in setting.aliases:
        assert Nccl.from_pairs([f"{alias}={text}"]) == by_field


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.field)
def test_variables_read_back_to_the_same_record(setting):
    first = Nccl.from_pairs([f"{setting.field}={_example(setting.kind)}"])
    pairs = [f"{name}={value}" for name, value in first.variables().items()]
    assert Nccl.from_pairs(pairs) == first


@pytest.mark.parametrize(
    ("pair", "field", "value"),
    [
        ("algorithm=ring", "algorithm", "Ring"),
        ("algorithm=^nvls,NVLSTREE", "algorithm", "^NVLS,NVLSTree"),
        (
            "NCCL_ALGO=ring,collnetdirect;allreduce:^tree",
            "algorithm",
            "Ring,CollNetDirect;AllReduce:^Tree",
        ),
        ("protocol=broadcast:ll128", "protocol", "Broadcast:LL128"),
        # NCCL compares path levels with strcmp: "pix" would be ignored.
        ("p2p_level=pix", "p2p_level", "PIX"),
        ("socket_interface==eth0,=eth1", "socket_interface", "=eth0,=eth1"),
        ("shm_disable=true", "shm_disable", True),
        ("ib_disable=0", "ib_disable", False),
        ("ib_gid_index=-1", "ib_gid_index", -1),
        ("debug_subsystems=init,net", "debug_subsystems", "INIT,NET"),
    ],
)
def test_values_become_what_nccl_understands(pair, field, value):
    assert Nccl.from_pairs([pair]).given() == {field: value}


@pytest.mark.parametrize(
    ("pair", "allowed"),
    [
        ("algorithm=Rings", "Ring, Tree"),
        ("algorithm=Ring;Tree", "functions: AllReduce"),
        ("algorithm=AllSum:Ring", "functions: AllReduce"),
        ("algorithm=Ring,", "Ring, Tree"),
        ("debug_subsystems=INIT;NET", "INIT, COLL"),
        ("protocol=Simpel", "LL, LL128, Simple"),
        ("buffer_bytes=8M", "bytes"),
        ("buffer_bytes=12", "1024"),
        ("max_channels=65", "from 1 to 64"),
        ("max_channels=2.5", "from 1 to 64"),
        ("p2p_level=NV", "LOC, NVL, PIX, PXB, PHB, SYS"),
        ("gdr_level=NVL", "LOC, PIX, PXB, PHB, SYS"),
        ("nvls=3", "from 0 to 2"),
        ("shm_disable=yes", "0 or 1"),
        ("ib_timeout=32", "from 0 to 31"),
        ("socket_family=AF_UNIX", "AF_INET, AF_INET6"),
        ("debug=LOUD", "VERSION, WARN, INFO, TRACE"),
        ("net_plugin=", "net_plugin=VALUE"),
        ("algorithm", "algorithm=VALUE"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(pair, allowed):
    with pytest.raises(UsageError) as caught:
        Nccl.from_pairs([pair])
    assert allowed in caught.value.allowed
    assert pair.split("=")[0] in caught.value.received


def test_an_unknown_key_lists_near_names_first_and_all_others():
    with pytest.raises(UsageError) as caught:
        Nccl.from_pairs(["algoritm=Ring"])
    listed = caught.value.allowed.split(" (")[0].split(", ")
    assert listed[0] == "algorithm"
    assert sorted(listed) == sorted(FIELDS)
    assert "algorithm" in caught.value.remedy


def test_a_key_of_another_framework_is_called_that():
    with pytest.raises(UsageError, match="PyTorch.*collective_timeout_s"):
        Nccl.from_pairs(["NCCL_ASYNC_ERROR_HANDLING=1"])


def test_one_key_twice_must_agree():
    assert Nccl.from_pairs(["nvls=0", "NCCL_NVLS_ENABLE=0"]).nvls == 0
    with pytest.raises(UsageError, match="one value"):
        Nccl.from_pairs(["nvls=0", "NCCL_NVLS_ENABLE=1"])


@pytest.mark.parametrize(
    "pairs",
    [
        ["min_channels=8", "max_channels=4"],
        ["socket_threads=16", "sockets_per_thread=8"],
    ],
)
def test_settings_that_contradict_each_other_are_refused(pairs):
    with pytest.raises(UsageError):
        Nccl.from_pairs(pairs)


def test_python_values_are_checked_like_texts():
    assert Nccl(algorithm="tree", nvls=1).variables() == {
        "NCCL_ALGO": "Tree",
        "NCCL_NVLS_ENABLE": "1",
    }
    with pytest.raises(UsageError):
        Nccl(max_channels=0)
    with pytest.raises(UsageError):
        Nccl(max_channels=True)


def test_over_puts_one_record_on_top_of_another():
    top = Nccl(nvls=0, ib_disable=False)
    assert top.over(Nccl(nvls=2, cross_nic=1)).given() == {
        "nvls": 0,
        "ib_disable": False,
        "cross_nic": 1,
    }


def test_newer_than_compares_versions_as_numbers():
    nccl = Nccl(nvls=1, algorithm="Ring")
    assert nccl.newer_than((2, 9, 9)) == ("NCCL_NVLS_ENABLE (since NCCL 2.17)",)
    assert nccl.newer_than((2, 27, 7)) == ()


def test_find_setting_ignores_case_and_prefix():
    assert find_setting("nccl_algo") is find_setting("ALGO")
    assert find_setting("NCCL_MIN_NCHANNELS").variable == "NCCL_MIN_CTAS"
