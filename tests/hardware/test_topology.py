"""nvidia-smi's matrices and lists of links are read right."""

from __future__ import annotations

from tests.diagnose.recorded import base
from tfmulti.hardware.topology import parse_matrix, parse_nvlink

# Spaces instead of tabs, older names of NICs, no NUMA column filled.
SPACES = """\
        GPU0    GPU1    mlx5_0  CPU Affinity
GPU0     X      PIX     NODE    0-23,48-71
GPU1    PIX      X      SYS     0-23,48-71
mlx5_0  NODE    SYS      X

Legend:

  PIX  = Connection traversing at most a single PCIe bridge
"""

LINKS = """\
GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-1)
     Link 0: 25.781 GB/s
     Link 1: <inactive>
GPU 1: NVIDIA B200 (UUID: GPU-2)
NVML: Unable to retrieve NVLink information as all links are inActive
GPU 2: Tesla V100-SXM2-32GB (UUID: GPU-3)
     Link 10: 25.781 GB/s
"""


def test_a_matrix_with_an_underlined_first_line():
    paths = parse_matrix(base("dgx_a100")["$ nvidia-smi topo -m"])
    assert paths is not None
    assert paths.gpus == tuple(f"GPU{i}" for i in range(8))
    assert paths.cells["GPU0", "GPU7"] == "NV12"
    assert paths.cells["GPU0", "mlx5_1"] == "PXB"
    assert paths.cells["mlx5_9", "GPU0"] == "SYS"
    assert paths.numa_nodes["GPU6"] == "5"
    assert len(paths.gpu_pairs) == 28


def test_a_matrix_in_spaces():
    paths = parse_matrix(SPACES)
    assert paths is not None
    assert paths.gpu_pairs == (("GPU0", "GPU1", "PIX"),)
    assert paths.cells["GPU1", "mlx5_0"] == "SYS"
    assert paths.numa_nodes == {}


def test_nics_of_any_name():
    text = SPACES.replace("mlx5_0", "NIC0  ") + "\n  NIC0: rdmap16s27\n"
    paths = parse_matrix(text)
    assert paths is not None
    assert paths.cells["GPU1", "rdmap16s27"] == "SYS"
    assert paths.cells["rdmap16s27", "GPU0"] == "NODE"


def test_peers_use_the_same_form():
    peers = parse_matrix(base("two_rtx_3090")["$ nvidia-smi topo -p2p r"])
    assert peers is not None
    assert peers.gpu_pairs == (("GPU0", "GPU1", "GNS"),)


def test_no_matrix():
    assert parse_matrix("") is None
    assert parse_matrix("Failed to initialize NVML: Unknown Error") is None


def test_links():
    links = parse_nvlink(LINKS)
    assert [(n.gpu, n.up, n.down) for n in links] == [
        (0, (0,), (1,)),
        (1, (), ()),
        (2, (10,), ()),
    ]
    assert parse_nvlink("") == ()
