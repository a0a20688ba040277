"""The journal's format: records one after another in a file, each with its length and two digests. Pure functions of bytes.

    magic (4) · payload length (4, big endian) · payload digest (32) · header digest (8) · payload

The digests are keyed by the file's own random key (it stands in the file's name and nowhere else), so that nothing a sender puts into
a body can pass for a record: after damage the next record is found by searching. A record that was being written when its process
died is incomplete at the end of its file: it was never answered for.

Why not SQLite: docs/decisions/0015-libraries-measured-and-not-taken.md.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

MAGIC: Final = b"HRJ1"
_HEAD: Final = struct.Struct(">4sI32s")
_CHECK_BYTES: Final = 8
HEADER_BYTES: Final = _HEAD.size + _CHECK_BYTES
LARGEST_PAYLOAD_BYTES: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Whole:
    """A record as it was written; `start` and `end` are places in the bytes that were read."""

    start: int
    end: int
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Damaged:
    """Bytes that are no record. `torn`: they are the end, as a write leaves them that was cut off."""

    start: int
    end: int
    torn: bool


def framed(payload: bytes, key: bytes) -> bytes:
    """The record of a payload, in a file of this key."""
    if len(payload) > LARGEST_PAYLOAD_BYTES:
        raise ValueError(f"a record holds at most {LARGEST_PAYLOAD_BYTES} bytes")
    head = _HEAD.pack(MAGIC, len(payload), _digest(payload, key))
    return head + _check(head, key) + payload


def records(data: bytes, key: bytes) -> Iterator[Whole | Damaged]:
    """What the bytes of a file hold, from a record's beginning to their end, without a gap. Raises nothing."""
    view = memoryview(data)
    place = 0
    while place < len(data):
        found = _record_at(data, view, place, key)
        yield found
        place = found.end


def _record_at(data: bytes, view: memoryview, start: int, key: bytes) -> Whole | Damaged:
    length = _length_at(view, start, key)
    if length is None:
        following = _next_header(data, view, start + 1, key)
        return Damaged(start, len(data) if following is None else following, torn=following is None)
    end = start + HEADER_BYTES + length
    if end > len(data):
        return Damaged(start, len(data), torn=True)
    payload = bytes(view[start + HEADER_BYTES : end])
    if _digest(payload, key) == view[start + 8 : start + 40]:
        return Whole(start, end, payload)
    return Damaged(start, end, torn=end == len(data))


def _length_at(view: memoryview, start: int, key: bytes) -> int | None:
    """Payload length of the header at this place; None = no header of this file."""
    header = view[start : start + HEADER_BYTES]
    if len(header) < HEADER_BYTES or bytes(header[: len(MAGIC)]) != MAGIC:
        return None
    if _check(bytes(header[: _HEAD.size]), key) != header[_HEAD.size :]:
        return None
    return int(_HEAD.unpack(header[: _HEAD.size])[1])


def _next_header(data: bytes, view: memoryview, start: int, key: bytes) -> int | None:
    place = data.find(MAGIC, start)
    while place >= 0:
        if _length_at(view, place, key) is not None:
            return place
        place = data.find(MAGIC, place + 1)
    return None


def _digest(payload: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(payload, key=key, digest_size=32).digest()


def _check(head: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(head, key=key, digest_size=_CHECK_BYTES).digest()
