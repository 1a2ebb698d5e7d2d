"""The exported environment never overwrites what the person set."""

from __future__ import annotations

from tfmulti.communication import Communication, Nccl, environment

RING = Communication(nccl=Nccl(algorithm="Ring", max_channels=4))


def test_everything_is_exported_into_an_empty_environment():
    exported = environment(RING, {})
    assert exported.variables == {"NCCL_ALGO": "Ring", "NCCL_MAX_CTAS": "4"}
    assert exported.notes == ()


def test_nothing_is_exported_by_default():
    assert environment(Communication(), {"HOME": "/root"}).variables == {}


def test_a_conflict_keeps_the_persons_value_and_names_both():
    exported = environment(RING, {"NCCL_ALGO": "Tree"})
    assert exported.variables == {"NCCL_MAX_CTAS": "4"}
    (note,) = exported.notes
    assert "NCCL_ALGO=Tree" in note
    assert "algorithm=Ring" in note


def test_an_equal_value_is_neither_exported_again_nor_a_conflict():
    exported = environment(RING, {"NCCL_ALGO": "Ring", "NCCL_MAX_CTAS": "4"})
    assert exported.variables == {}
    assert exported.notes == ()


def test_an_older_name_of_the_same_setting_is_a_conflict_too():
    exported = environment(RING, {"NCCL_MAX_NCHANNELS": "2"})
    assert exported.variables == {"NCCL_ALGO": "Ring"}
    assert "NCCL_MAX_NCHANNELS=2" in exported.notes[0]


def test_a_conflict_with_a_preset_says_which_preset():
    exported = environment(
        Communication(nccl_preset="pcie"), {"NCCL_P2P_LEVEL": "SYS"}
    )
    assert exported.variables == {"NCCL_NVLS_ENABLE": "0"}
    assert "the preset pcie" in exported.notes[0]


def test_asking_changes_nothing():
    env = {"NCCL_ALGO": "Tree"}
    environment(RING, env)
    assert env == {"NCCL_ALGO": "Tree"}
