"""Where each record of a TFRecord file begins.

A TFRecord file is a sequence of

    length      uint64, little-endian
    checksum    uint32, masked CRC-32C of the length
    data        `length` bytes
    checksum    uint32, masked CRC-32C of the data

(tensorflow.org/tutorials/load_data/tfrecord) and has no table of contents.
One is made by hopping from length to length, which reads 12 bytes a record,
and is kept beside the file as `.NAME.tfmulti-index.npy` (hidden, so that
patterns pass over it) with the file's size and time of change. Where that
folder cannot be written to, the table is made anew in each run. No
TensorFlow here.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tfmulti.errors import UsageError

_FORMAT = 1
_HEADER_BYTES = 12
_FOOTER_BYTES = 4
_POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed (RFC 3720, B.4).
_MASK_DELTA = 0xA282EAD8


def index_of(path: Path) -> np.ndarray:
    """Gives the offset of each record's length field, int64 [records].

    Raises:
        UsageError: The file is truncated, compressed or no TFRecord file.
    """
    state = path.stat()
    stamp = [_FORMAT, state.st_size, state.st_mtime_ns]
    kept = _load(cache_path(path), stamp)
    if kept is not None:
        return kept
    offsets = scan(path)
    _store(cache_path(path), np.array([*stamp, *offsets], np.int64))
    return offsets


def cache_path(path: Path) -> Path:
    """Gives the place where a file's index is kept."""
    return path.with_name(f".{path.name}.tfmulti-index.npy")


def scan(path: Path) -> np.ndarray:
    """Makes the index of a file by reading its lengths.

    Returns:
        int64 [records].

    Raises:
        UsageError: As for `index_of`.
    """
    size = path.stat().st_size
    if not size:
        return np.zeros(0, np.int64)
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        offsets, end = _hop(data, size)
        _check_lengths(path, data, offsets)
    if end != size:
        last = int(offsets[-1])
        raise _error(path, last, f"the file ends {end - size} bytes too soon")
    return offsets


def _hop(data: mmap.mmap, size: int) -> tuple[np.ndarray, int]:
    """Gives the records' offsets and where the last one ought to end."""
    offsets, offset = [], 0
    while offset < size:
        offsets.append(offset)
        if offset + _HEADER_BYTES > size:
            return np.array(offsets, np.int64), offset + _HEADER_BYTES
        (length,) = struct.unpack_from("<Q", data, offset)
        offset += _HEADER_BYTES + length + _FOOTER_BYTES
    return np.array(offsets, np.int64), offset


def _check_lengths(path: Path, data: mmap.mmap, offsets: np.ndarray) -> None:
    """Compares the lengths with their checksums, all at once."""
    whole = offsets[offsets + _HEADER_BYTES <= len(data)]
    heads = b"".join(data[o : o + _HEADER_BYTES] for o in whole)
    table = np.frombuffer(heads, np.uint8).reshape(-1, _HEADER_BYTES)
    stored = np.ascontiguousarray(table[:, 8:]).view("<u4")[:, 0]
    wrong = np.flatnonzero(masked_crc(table[:, :8]) != stored)
    if not len(wrong):
        return
    if data[:2] == b"\x1f\x8b":
        raise UsageError(
            received=f"the compressed file {path}",
            allowed="TFRecord files without compression",
            remedy="Decompress it: a record inside cannot be reached alone.",
        )
    at = int(whole[wrong[0]])
    raise _error(path, at, "the record's length does not match its checksum")


def masked_crc(rows: np.ndarray) -> np.ndarray:
    """Gives TFRecord's masked CRC-32C of each row of bytes.

    Args:
        rows: uint8 [n, length].

    Returns:
        uint32 [n].
    """
    table = _crc_table()
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in rows.T:
        crc = table[(crc ^ column) & np.uint32(255)] ^ (crc >> np.uint32(8))
    crc = ~crc
    rotated = (crc >> np.uint32(15)) | (crc << np.uint32(17))
    return rotated + np.uint32(_MASK_DELTA)


def _crc_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        odd = (table & np.uint32(1)).astype(bool)
        table = table >> np.uint32(1)
        table[odd] ^= np.uint32(_POLYNOMIAL)
    return table


def _load(path: Path, stamp: Iterable[int]) -> np.ndarray | None:
    """Reads a kept index if it is there, whole, and of the file as it is."""
    stamp = list(stamp)
    try:
        stored = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if stored.ndim != 1 or stored[: len(stamp)].tolist() != stamp:
        return None
    return stored[len(stamp) :]


def _store(path: Path, content: np.ndarray) -> None:
    """Writes an index so that other workers see all of it or nothing."""
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(
            dir=path.parent, prefix=f"{path.name}."
        )
        with os.fdopen(handle, "wb") as file:
            np.save(file, content)
        os.replace(temporary, path)


def _error(path: Path, offset: int, what: str) -> UsageError:
    return UsageError(
        received=f"{path}, damaged at byte {offset}: {what}",
        allowed="whole TFRecord files",
        remedy="Write this file again, or leave it out of the pattern.",
    )
