"""The journal's bytes: whatever is cut off or damaged, every other record is read as it was written, and nothing is made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.ingress.spool import journal
from connectors.ingress.spool.journal import HEADER_BYTES, MAGIC, Damaged, Whole, framed, records

KEY = bytes(range(16))
PAYLOADS = [b'{"n":1}\nfirst', b"", b"third \x00\xff " + b"x" * 300, b"last"]
FRAMES = [framed(payload, KEY) for payload in PAYLOADS]
FILE = b"".join(FRAMES)
ENDS = [sum(map(len, FRAMES[: number + 1])) for number in range(len(FRAMES))]


def payloads(data: bytes) -> list[bytes]:
    return [found.payload for found in records(data, KEY) if isinstance(found, Whole)]


def damages(data: bytes) -> list[Damaged]:
    return [found for found in records(data, KEY) if isinstance(found, Damaged)]


def test_what_was_written_is_read() -> None:
    assert payloads(FILE) == PAYLOADS
    assert damages(FILE) == []
    assert [found.end for found in records(FILE, KEY)] == ENDS
    assert list(records(b"", KEY)) == []


def test_a_tail_that_is_torn_at_any_byte_costs_no_earlier_record() -> None:
    for cut in range(len(FILE)):
        whole = sum(end <= cut for end in ENDS)
        assert payloads(FILE[:cut]) == PAYLOADS[:whole]
        start = ENDS[whole - 1] if whole else 0
        assert damages(FILE[:cut]) == ([Damaged(start, cut, torn=True)] if start < cut else [])


@pytest.mark.parametrize("bit", [0, 7])
def test_a_flipped_bit_in_any_byte_costs_one_record(bit: int) -> None:
    for place in range(len(FILE)):
        data = bytearray(FILE)
        data[place] ^= 1 << bit
        hit = next(number for number, end in enumerate(ENDS) if place < end)
        assert payloads(bytes(data)) == PAYLOADS[:hit] + PAYLOADS[hit + 1 :]
        start, end = (ENDS[hit - 1] if hit else 0), ENDS[hit]
        assert damages(bytes(data)) == [Damaged(start, end, torn=end == len(FILE))]


@pytest.mark.parametrize("zeros", [1, HEADER_BYTES, 5000])
def test_blocks_of_zeros_at_the_end_are_a_torn_tail(zeros: int) -> None:
    """What some file systems leave of a file that had grown before a power cut."""
    assert payloads(FILE + bytes(zeros)) == PAYLOADS
    assert damages(FILE + bytes(zeros)) == [Damaged(len(FILE), len(FILE) + zeros, torn=True)]


def test_a_body_cannot_pass_for_a_record() -> None:
    """A sender does not know the file's key: what it puts into a body is not found when the record around it is damaged."""
    forged = framed(b"forged", bytes(16)) + MAGIC * 20
    data = bytearray(framed(forged, KEY) + framed(b"after", KEY))
    data[5] ^= 1
    assert payloads(bytes(data)) == [b"after"]
    assert damages(bytes(data)) == [Damaged(0, HEADER_BYTES + len(forged), torn=False)]


def test_another_files_records_are_none_of_this_one() -> None:
    assert payloads(framed(b"x", bytes(16))) == []


@given(st.lists(st.binary(max_size=200), max_size=6), st.binary(max_size=300))
def test_garbage_behind_records_is_covered_without_a_gap(bodies: list[bytes], garbage: bytes) -> None:
    data = b"".join(framed(body, KEY) for body in bodies) + garbage
    found = list(records(data, KEY))
    assert payloads(data)[: len(bodies)] == bodies
    assert [one.start for one in found[1:]] + [len(data)] == [one.end for one in found] or not data


def test_a_payload_that_its_length_cannot_say_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LARGEST_PAYLOAD_BYTES", 3)
    with pytest.raises(ValueError, match="at most 3 bytes"):
        framed(b"four", KEY)
