"""Without a server: the body is read whole and bounded, or refused; reading never raises."""

from __future__ import annotations

import io
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from connectors.delivery import Outcome
from connectors.ingress.body import read_body as read_body_held
from connectors.ingress.body_memory import SMALL_BYTES, BodyRoom, Hold


def read_body(environ: dict[str, Any], limit: int) -> bytes | Outcome:
    return read_body_held(environ, limit, Hold(BodyRoom()))


class Stream(io.BytesIO):
    """Remembers how much was asked of it."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        self.taken += len(piece)
        return piece


class Broken:
    def read(self, _size: int) -> bytes:
        raise OSError("the peer went away")


def environ(body: bytes, **members: Any) -> dict[str, Any]:
    return {"wsgi.input": Stream(body), "wsgi.input_terminated": True, "CONTENT_LENGTH": str(len(body))} | members


def code(found: bytes | Outcome) -> tuple[str, int]:
    assert isinstance(found, Outcome)
    return found.code, found.status


@pytest.mark.parametrize("size", [0, 1, 9, 10])
def test_up_to_the_limit_it_is_whole(size: int) -> None:
    assert read_body(environ(b"x" * size), 10) == b"x" * size
    assert read_body(environ(b"x" * size, CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked"), 10) == b"x" * size


def test_a_declared_length_above_the_limit_is_refused_without_reading() -> None:
    members = environ(b"x" * 11)
    found = read_body(members, 10)
    assert code(found) == ("too_large", 413)
    assert "10 bytes" in found.message
    assert members["wsgi.input"].taken == 0


def test_a_chunked_body_is_read_no_further_than_the_limit() -> None:
    members = environ(b"x" * 1_000_000, CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="Chunked")
    assert code(read_body(members, 10)) == ("too_large", 413)
    assert members["wsgi.input"].taken == 11


def test_a_body_shorter_than_declared_is_refused() -> None:
    assert code(read_body(environ(b"abc", CONTENT_LENGTH="4"), 10)) == ("body_incomplete", 400)


def test_only_the_declared_part_of_a_longer_body_is_read() -> None:
    assert read_body(environ(b"abcdef", CONTENT_LENGTH="3"), 10) == b"abc"


def test_a_body_that_breaks_off_is_refused() -> None:
    assert code(read_body(environ(b"", CONTENT_LENGTH="4") | {"wsgi.input": Broken()}, 10)) == ("body_incomplete", 400)


@pytest.mark.parametrize("length", ["abc", "-1", "1.0", "٣", "9" * 30])
def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    assert code(read_body(environ(b"", CONTENT_LENGTH=length), 10)) == ("bad_length", 400)


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip"])
def test_a_compressed_body_is_refused_unread(encoding: str) -> None:
    members = environ(b"x", HTTP_CONTENT_ENCODING=encoding)
    assert code(read_body(members, 10)) == ("unsupported_encoding", 415)
    assert members["wsgi.input"].taken == 0


def test_identity_is_no_compression() -> None:
    assert read_body(environ(b"x", HTTP_CONTENT_ENCODING="Identity"), 10) == b"x"


def test_a_server_without_chunked_bodies_asks_for_a_length() -> None:
    members = environ(b"x", CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked") | {"wsgi.input_terminated": False}
    assert code(read_body(members, 10)) == ("length_required", 411)


MIB = 1024 * 1024


def test_a_large_body_holds_what_has_arrived_and_one_goes_beyond_the_room() -> None:
    room = BodyRoom(most=4 * MIB, wait_seconds=0.0)
    size = 3 * MIB
    with room.hold() as first, room.hold() as second, room.hold() as third:
        assert read_body_held(environ(b"x" * size), size, first) == b"x" * size
        assert first.held == size
        assert len(read_body_held(environ(b"x" * size), size, second)) == size, "one body may go beyond"
        members = environ(b"x" * size)
        assert code(read_body_held(members, size, third)) == ("busy", 503)
        assert SMALL_BYTES < members["wsgi.input"].taken < size
        assert len(read_body_held(environ(b"x" * SMALL_BYTES), MIB, third)) == SMALL_BYTES
        assert third.held == 0
    with room.hold() as fourth:
        assert len(read_body_held(environ(b"x" * size), size, fourth)) == size


def test_what_a_header_declares_holds_nothing() -> None:
    """Strangers who announce 25 MiB and stop after 300 KiB leave the room to those who send."""
    room = BodyRoom(most=64 * MIB, wait_seconds=0.0)
    largest = 25 * MIB
    with ExitStack() as strangers:
        for _ in range(10):
            hold = strangers.enter_context(room.hold())
            cut = environ(b"x" * 300_000, CONTENT_LENGTH=str(largest))
            assert code(read_body_held(cut, largest, hold)) == ("body_incomplete", 400)
            assert hold.held == MIB
        for _ in range(2):
            real = strangers.enter_context(room.hold())
            assert len(read_body_held(environ(b"x" * largest), largest, real)) == largest


def test_bodies_that_have_half_of_theirs_do_not_wait_for_one_another() -> None:
    room = BodyRoom(most=4 * MIB, wait_seconds=30.0)
    half = threading.Barrier(4)
    done: list[bool] = []

    def read() -> None:
        with room.hold() as hold:
            assert hold.take(MIB)
            half.wait(20)
            done.append(hold.take(4 * MIB))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(20)
    assert done == [True] * 4


def test_a_body_larger_than_the_room_fits_alone() -> None:
    with BodyRoom(most=10, wait_seconds=0.0).hold() as alone:
        assert len(read_body_held(environ(b"x" * 600_000), 10**6, alone)) == 600_000


def test_who_finds_the_room_full_waits_for_it() -> None:
    room = BodyRoom(most=1_000_000, wait_seconds=30.0)
    inside, done = threading.Event(), threading.Event()

    def occupy() -> None:
        with room.hold() as first:
            assert first.take(1_100_000)
            inside.set()
            assert done.wait(20)

    other = threading.Thread(target=occupy)
    other.start()
    assert inside.wait(20)
    threading.Timer(0.05, done.set).start()
    with room.hold() as second:
        assert second.take(200_000)
        assert done.is_set()
    other.join()
