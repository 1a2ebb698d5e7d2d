"""Presets: complete, reasoned and below the person's own settings."""

from __future__ import annotations

import pytest

from tfmulti.communication import PRESETS, Communication, find_preset
from tfmulti.errors import UsageError


def test_the_five_presets_are_there():
    assert list(PRESETS) == ["nvlink", "pcie", "ethernet", "infiniband", "efa"]


@pytest.mark.parametrize("name", PRESETS)
def test_each_setting_of_a_preset_has_a_reason_and_no_other_has(name):
    preset = PRESETS[name]
    assert set(preset.why) == set(preset.nccl.given())
    assert all(len(reason) > 20 for reason in preset.why.values())


@pytest.mark.parametrize("name", PRESETS)
def test_the_text_shows_each_variable_with_its_value_and_reason(name):
    preset = PRESETS[name]
    text = preset.text()
    for variable, value in preset.nccl.variables().items():
        assert f"{variable}={value}: " in text
    for reason in preset.why.values():
        assert reason in text


def test_a_persons_own_setting_goes_over_the_presets():
    settings = Communication.from_flags(
        nccl_preset="ethernet", nccl=["socket_threads=2", "nvls=0"]
    )
    nccl = settings.effective_nccl()
    assert nccl.socket_threads == 2
    assert nccl.nvls == 0
    assert nccl.sockets_per_thread == 4


def test_an_unknown_preset_lists_those_that_are():
    with pytest.raises(UsageError, match="nvlink, pcie, ethernet"):
        find_preset("nvlnk")
