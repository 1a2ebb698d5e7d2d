"""nvidia-smi's XML is read right in each of its generations."""

from __future__ import annotations

import pytest

from tests.diagnose.recorded import base
from tfmulti.hardware.smi_query import parse_query

SECTION = "$ nvidia-smi -q -x"

VOLTA = """\
<nvidia_smi_log>
  <driver_version>450.80.02</driver_version>
  <cuda_version>11.0</cuda_version>
  <gpu id="00000000:1A:00.0">
    <product_name>Tesla V100-SXM2-32GB</product_name>
    <ecc_errors>
      <volatile>
        <single_bit><total>7</total></single_bit>
        <double_bit><device_memory>3</device_memory><total>3</total></double_bit>
      </volatile>
      <aggregate><double_bit><total>9</total></double_bit></aggregate>
    </ecc_errors>
    <retired_pages><pending_retirement>Yes</pending_retirement></retired_pages>
  </gpu>
</nvidia_smi_log>
"""


def test_version_12_of_the_form():
    report = parse_query(base("dgx_a100")[SECTION])
    assert (report.driver_version, report.cuda_version) == (
        "570.133.20",
        "12.8",
    )
    assert [gpu.index for gpu in report.gpus] == list(range(8))
    gpu = report.gpus[3]
    assert gpu.name == "NVIDIA A100-SXM4-80GB"
    assert gpu.bus_id == "00000000:4E:00.0"
    assert (gpu.pcie_generation, gpu.pcie_width) == (4, 16)
    assert (gpu.power_limit_w, gpu.power_default_w) == (400.0, 400.0)
    assert gpu.memory_bytes == 80 * 2**30
    assert (gpu.mig, gpu.ecc, gpu.persistence) == (False, True, True)
    assert gpu.ecc_uncorrected == 0
    assert gpu.fabric is None


def test_version_12_of_driver_525():
    gpu = parse_query(base("rtx_3090")[SECTION]).gpus[0]
    assert (gpu.power_limit_w, gpu.power_default_w) == (200.0, 350.0)
    assert gpu.ecc is None
    assert gpu.ecc_uncorrected is None
    assert gpu.pcie_generation_host is None
    assert gpu.slowdowns == ()
    assert not gpu.busy


def test_version_13_of_the_form():
    gpu = parse_query(base("rtx_3080")[SECTION]).gpus[0]
    assert gpu.power_limit_w == 320.0
    assert gpu.memory_used_bytes == 9184 * 2**20
    assert gpu.busy


def test_older_counters_of_errors():
    """Up to Volta errors are counted by bits: uncorrected are double ones."""
    gpu = parse_query(VOLTA).gpus[0]
    assert gpu.ecc_uncorrected == 3
    assert gpu.remap_pending is True
    assert gpu.remap_failure is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NVIDIA-SMI has failed\n because", "NVIDIA-SMI has failed because"),
        ("", "said nothing"),
    ],
)
def test_what_is_no_xml_is_an_error(text, message):
    with pytest.raises(ValueError, match=message):
        parse_query(text)
