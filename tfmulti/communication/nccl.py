"""NCCL's settings as one typed record.

NCCL carries the gradients between GPUs and is steered by environment
variables that it reads once, when a process first uses it. This record has a
field for each that matters; `None` leaves NCCL's own choice. Everything is
checked when the record is made, so that a slip is one message now and not a
hang or a slow job later.

    Nccl(algorithm="ring")  ==  Nccl.from_pairs(["NCCL_ALGO=Ring"])
    .variables()            ->  {"NCCL_ALGO": "Ring"}

Meaning of each variable: NVIDIA's manual, see `nccl_table`.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tfmulti.communication.nccl_table import SETTINGS, Setting
from tfmulti.errors import UsageError

_LARGEST_SOCKETS = 64

# Looks like NCCL's, is read by another framework only.
_FOREIGN = {
    "NCCL_ASYNC_ERROR_HANDLING": "PyTorch",
    "NCCL_BLOCKING_WAIT": "PyTorch",
    "NCCL_DESYNC_DEBUG": "PyTorch",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "PyTorch",
    "TORCH_NCCL_BLOCKING_WAIT": "PyTorch",
}


@dataclass(frozen=True, kw_only=True)
class Nccl:
    """Settings of NCCL; None leaves NCCL's own choice.

    Attributes:
        algorithm: How ranks pass data: "Ring", "Tree", "NVLS", lists of them.
        protocol: "LL" (latency), "LL128", "Simple" (bandwidth).
        min_channels: Fewest CUDA blocks for one collective.
        max_channels: Most CUDA blocks; fewer leave more of the GPU to the
            model.
        buffer_bytes: Buffer of each channel and protocol, in bytes.
        launch_mode: How one process launches on several GPUs.
        p2p_level: Farthest two GPUs that still read each other directly:
            "NVL" NVLink, "PIX" one PCI switch, "PXB" several, "PHB" one NUMA
            node, "SYS" anywhere, "LOC" never.
        p2p_disable: Never read another GPU directly.
        shm_disable: Do not pass data through host shared memory.
        nvls: NVLink SHARP: 0 off, 1 on, 2 on where it can.
        mnnvl: NVLink between hosts: 0 off, 1 on, 2 on where it can.
        topology_file: XML that describes the host where NCCL misreads it.
        ib_disable: Do not use InfiniBand or RoCE.
        ib_hca: Which adapters to use.
        ib_gid_index: GID of RoCE; -1 lets NCCL find it.
        ib_timeout: Exponent of the wait before a retry.
        ib_retry_count: Retries before an error.
        ib_service_level: InfiniBand service level.
        ib_traffic_class: InfiniBand or RoCE traffic class.
        ib_queue_pairs: Queue pairs for each connection.
        collnet: Use the switch-offload (SHARP) plugin.
        gdr_level: Farthest GPU and network card that use GPUDirect.
        gdr_read: GPUDirect for sending as well.
        socket_interface: Which network interfaces to use.
        socket_family: "AF_INET" or "AF_INET6".
        socket_threads: CPU threads for each socket connection.
        sockets_per_thread: Sockets for each of these threads.
        cross_nic: May a ring change network card: 0 no, 1 yes, 2 if better.
        network: Name of the network module to insist on.
        net_plugin: Network plugin to load.
        tuner_plugin: Tuner plugin to load.
        debug: How much NCCL prints.
        debug_subsystems: What it prints about.
        debug_file: Where it prints.
    """

    algorithm: str | None = None
    protocol: str | None = None
    min_channels: int | None = None
    max_channels: int | None = None
    buffer_bytes: int | None = None
    launch_mode: str | None = None
    p2p_level: str | None = None
    p2p_disable: bool | None = None
    shm_disable: bool | None = None
    nvls: int | None = None
    mnnvl: int | None = None
    topology_file: str | None = None
    ib_disable: bool | None = None
    ib_hca: str | None = None
    ib_gid_index: int | None = None
    ib_timeout: int | None = None
    ib_retry_count: int | None = None
    ib_service_level: int | None = None
    ib_traffic_class: int | None = None
    ib_queue_pairs: int | None = None
    collnet: bool | None = None
    gdr_level: str | None = None
    gdr_read: bool | None = None
    socket_interface: str | None = None
    socket_family: str | None = None
    socket_threads: int | None = None
    sockets_per_thread: int | None = None
    cross_nic: int | None = None
    network: str | None = None
    net_plugin: str | None = None
    tuner_plugin: str | None = None
    debug: str | None = None
    debug_subsystems: str | None = None
    debug_file: str | None = None

    def __post_init__(self) -> None:
        for setting in SETTINGS:
            value = getattr(self, setting.field)
            if value is not None:
                object.__setattr__(
                    self, setting.field, _read(setting, setting.field, value)
                )
        self._check_pairs()

    @staticmethod
    def from_pairs(pairs: Iterable[str]) -> Nccl:
        """Reads `key=value` texts; a key is a field's or NCCL's own name.

        Raises:
            UsageError: A key or value that NCCL does not know, or a key that
                is given twice with different values.
        """
        values: dict[str, Any] = {}
        for pair in pairs:
            key, equals, text = pair.partition("=")
            setting = find_setting(key.strip())
            if not equals or not text.strip():
                raise UsageError(
                    received=f"--nccl {pair}",
                    allowed=f"{key.strip()}=VALUE, VALUE being "
                    + setting.kind.allowed,
                    remedy=f"Give {key.strip()} a value.",
                )
            value = _read(setting, key.strip(), text.strip())
            if values.get(setting.field, value) != value:
                raise UsageError(
                    received=f"--nccl {pair} after "
                    f"{setting.field}={values[setting.field]}",
                    allowed="one value for each setting",
                    remedy="Remove one of the two.",
                )
            values[setting.field] = value
        return Nccl(**values)

    def given(self) -> dict[str, bool | int | str]:
        """Gives the fields that are set, by name."""
        return {
            field.name: value
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) is not None
        }

    def over(self, base: Nccl) -> Nccl:
        """Gives `base` with this record's settings on top."""
        merged: dict[str, Any] = base.given() | self.given()
        return Nccl(**merged)

    def variables(self) -> dict[str, str]:
        """Gives the environment that says the same to NCCL."""
        given = self.given()
        return {
            setting.variable: _written(given[setting.field])
            for setting in SETTINGS
            if setting.field in given
        }

    def newer_than(self, version: tuple[int, ...]) -> tuple[str, ...]:
        """Lists the variables that NCCL `version` does not read yet."""
        given = self.given()
        return tuple(
            f"{setting.variable} (since NCCL {_dotted(setting.since)})"
            for setting in SETTINGS
            if setting.field in given and setting.since > version[:2]
        )

    def _check_pairs(self) -> None:
        fewest, most = self.min_channels, self.max_channels
        if fewest is not None and most is not None and fewest > most:
            raise UsageError(
                received=f"NCCL min_channels={fewest}, max_channels={most}",
                allowed="min_channels up to max_channels",
                remedy="Lower min_channels or raise max_channels.",
            )
        sockets = (self.socket_threads or 1) * (self.sockets_per_thread or 1)
        if sockets > _LARGEST_SOCKETS:
            raise UsageError(
                received=f"NCCL socket_threads={self.socket_threads} x "
                f"sockets_per_thread={self.sockets_per_thread} = {sockets}",
                allowed=f"a product up to {_LARGEST_SOCKETS}",
                remedy="Lower one of the two.",
            )


def find_setting(key: str) -> Setting:
    """Finds the setting that a person's key names.

    Args:
        key: A field of `Nccl` or an NCCL variable, in any case.

    Raises:
        UsageError: No such setting; the nearest names come first.
    """
    names: dict[str, Setting] = {}
    for setting in SETTINGS:
        for name in (setting.field, setting.variable, *setting.aliases):
            names[name.lower()] = setting
            names[name.lower().removeprefix("nccl_")] = setting
    if key.lower() in names:
        return names[key.lower()]
    raise _unknown_key(key, names)


def _unknown_key(key: str, names: Mapping[str, Setting]) -> UsageError:
    if key.upper() in _FOREIGN:
        return UsageError(
            received=f"NCCL setting {key}",
            allowed="settings that NCCL itself reads",
            remedy=f"{key.upper()} belongs to {_FOREIGN[key.upper()]}; "
            "TensorFlow's counterpart is --collective_timeout_s.",
        )
    near = difflib.get_close_matches(key.lower(), names, n=3, cutoff=0.5)
    first = list(dict.fromkeys(names[name].field for name in near))
    rest = [s.field for s in SETTINGS if s.field not in first]
    hint = f"Did you mean {' or '.join(first)}?" if first else ""
    return UsageError(
        received=f"NCCL setting {key}",
        allowed=", ".join(first + rest) + " (or their NCCL_* names)",
        remedy=hint or "Choose one of these.",
    )


def _read(setting: Setting, key: str, value: object) -> bool | int | str:
    try:
        return setting.kind.read(value)
    except ValueError:
        raise UsageError(
            received=f"NCCL setting {key}={value}",
            allowed=setting.kind.allowed,
            remedy=f"Give {key} such a value, or leave it out.",
        ) from None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _written(value: bool | int | str) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
