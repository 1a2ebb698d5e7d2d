"""Communication settings: how gradients are reduced, and NCCL's part in it.

Nothing here imports TensorFlow: the launcher needs these records to write a
worker's environment before TensorFlow starts in it.

    record.py       Communication: the one record, from flags or from Python
    nccl.py         Nccl: the typed NCCL settings
    nccl_table.py   which variables there are, their values, since when
    nccl_values.py  the kinds of value
    presets.py      settings for common hosts, each with its reason
    export.py       record -> NCCL_* variables of a worker
    check.py        record + job -> notes or an error
"""

from __future__ import annotations

from tfmulti.communication.check import check, installed_nccl
from tfmulti.communication.export import ExportedEnvironment, environment
from tfmulti.communication.nccl import Nccl
from tfmulti.communication.presets import PRESETS, Preset, find_preset
from tfmulti.communication.record import ALL_REDUCES, Communication

__all__ = [
    "ALL_REDUCES",
    "PRESETS",
    "Communication",
    "ExportedEnvironment",
    "Nccl",
    "Preset",
    "check",
    "environment",
    "find_preset",
    "installed_nccl",
]
