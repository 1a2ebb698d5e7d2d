"""How gradients are reduced, as one record for flags and for Python.

Every replica computes a gradient; an all-reduce gives each of them the sum.
Which way the bytes take is chosen here:

    all_reduce           mirrored  multiworker  what it does
    auto                 yes       yes   NCCL between GPUs; without GPUs one
                                         device inside a process, TensorFlow's
                                         ring between processes
    nccl                 yes       yes   NCCL or nothing
    ring                 -         yes   TensorFlow's ring over gRPC
    hierarchical_copy    yes       -     copies along a tree of GPU pairs
    one_device           yes       -     adds on one device and copies back

The figures behind `auto` on CPUs are in tfmulti/strategy/reduction.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tfmulti.communication.nccl import Nccl
from tfmulti.communication.presets import find_preset
from tfmulti.errors import UsageError

ALL_REDUCES = ("auto", "nccl", "hierarchical_copy", "one_device", "ring")


# Bytes and milliseconds of it still fit into 64 bits.
LARGEST = 10**9


@dataclass(frozen=True, kw_only=True)
class Communication:
    """How gradients are reduced over the replicas.

    Attributes:
        all_reduce: One of `ALL_REDUCES`.
        packs: Mirrored with "nccl" or "hierarchical_copy": in how many packs
            the gradients are concatenated; 0 sends each by itself.
        pack_mb: Multi-worker: largest pack, in MB (10^6 bytes). A pack can
            leave while the rest is still computed.
        timeout_s: Multi-worker: a collective that takes longer is an error,
            in seconds. For hunting hangs: it costs a thread a collective.
        nccl: The person's own NCCL settings.
        nccl_preset: A name in `presets.PRESETS`, below the person's own.
    """

    all_reduce: str = "auto"
    packs: int | None = None
    pack_mb: float | None = None
    timeout_s: float | None = None
    nccl: Nccl = field(default_factory=Nccl)
    nccl_preset: str | None = None

    def __post_init__(self) -> None:
        if self.all_reduce not in ALL_REDUCES:
            raise UsageError(
                received=f"--all_reduce={self.all_reduce}",
                allowed=", ".join(ALL_REDUCES),
                remedy="Choose one of these for --all_reduce.",
            )
        _check_number("--packs", self.packs, 0, whole=True)
        _check_number("--pack_mb", self.pack_mb, 0, above=True)
        _check_number(
            "--collective_timeout_s", self.timeout_s, 0, above=True
        )
        if self.nccl_preset is not None:
            find_preset(self.nccl_preset)

    @staticmethod
    def from_flags(
        *,
        all_reduce: str | None = None,
        packs: int | None = None,
        pack_mb: float | None = None,
        timeout_s: float | None = None,
        nccl: Iterable[str] | None = None,
        nccl_preset: str | None = None,
    ) -> Communication:
        """Makes the record from what the flags say.

        Args:
            all_reduce: `--all_reduce`; None means "auto".
            packs: `--packs`.
            pack_mb: `--pack_mb`, in MB.
            timeout_s: `--collective_timeout_s`, in seconds.
            nccl: Every `--nccl`, each "key=value".
            nccl_preset: `--nccl_preset`.

        Raises:
            UsageError: A value or key that is not known.
        """
        return Communication(
            all_reduce=all_reduce or "auto",
            packs=packs,
            pack_mb=pack_mb,
            timeout_s=timeout_s,
            nccl=Nccl.from_pairs(nccl or ()),
            nccl_preset=nccl_preset or None,
        )

    @property
    def pack_bytes(self) -> int | None:
        """The largest pack in bytes."""
        if self.pack_mb is None:
            return None
        return max(1, round(self.pack_mb * 10**6))

    def effective_nccl(self) -> Nccl:
        """Gives the preset's settings with the person's own on top."""
        if self.nccl_preset is None:
            return self.nccl
        return self.nccl.over(find_preset(self.nccl_preset).nccl)

    def to_json(self) -> dict[str, Any]:
        """Gives the record as plain JSON values."""
        return dataclasses.asdict(self) | {"nccl": self.nccl.given()}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Communication:
        """Reads back what `to_json` gave."""
        values = dict(document)
        values["nccl"] = Nccl(**values.get("nccl", {}))
        return Communication(**values)


def _check_number(
    flag: str,
    value: float | None,
    bound: float,
    *,
    above: bool = False,
    whole: bool = False,
) -> None:
    if value is None:
        return
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    good = number and (value > bound if above else value >= bound)
    if whole:
        good = good and isinstance(value, int)
    if not good or value > LARGEST:
        kind = "a whole number" if whole else "a number"
        raise UsageError(
            received=f"{flag}={value}",
            allowed=f"{kind} {'above' if above else 'from'} {bound}, up to "
            f"{LARGEST}",
            remedy=f"Give such a value for {flag}, or leave it out.",
        )
