"""The client of `bench ingress`: sends each request until it is accepted, and says what that took."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import pytest

from connectors.bench import http_load
from connectors.bench.http_load import TRIES, post
from connectors.bench.workbench import BenchFailed

ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok"
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy"
Answer = Callable[[socket.socket, bytes], bool]
"""Answers one request on a connection; False = close it."""


@contextmanager
def server(answer: Answer) -> Iterator[int]:
    """A server for requests of ten bytes each; yields its port."""

    def serve(client: socket.socket) -> None:
        with closing(client):
            while (request := client.recv(10, socket.MSG_WAITALL)) and answer(client, request):
                continue

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]


def in_turn(*answers: Sequence[bytes] | None) -> Answer:
    """The pieces of each answer, the last one for ever; None: the connection ends without one."""
    left = list(answers)
    lock = threading.Lock()

    def answer(client: socket.socket, request: bytes) -> bool:
        with lock:
            pieces = left.pop(0) if len(left) > 1 else left[0]
        for piece in pieces or ():
            client.sendall(piece)
        return pieces is not None

    return answer


def requests(count: int) -> dict[int, bytes]:
    return {number: b"%010d" % number for number in range(count)}


def test_every_request_is_sent_once_and_gets_its_own_answer() -> None:
    seen: list[bytes] = []

    def answer(client: socket.socket, request: bytes) -> bool:
        seen.append(request)
        client.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 10\r\n\r\n" + request)
        return True

    with server(answer) as port:
        load = post(port, requests(50), 7)
    assert load.answers == requests(50)
    assert sorted(seen) == sorted(requests(50).values())
    assert (load.errors, len(load.latencies)) == (0, 50)
    assert 0 < max(load.latencies) <= load.seconds


def test_an_answer_may_come_in_pieces() -> None:
    with server(in_turn([ACCEPTED[:20], ACCEPTED[20:45], ACCEPTED[45:]])) as port:
        assert post(port, requests(3), 1).answers == dict.fromkeys(range(3), b"ok")


def test_what_is_refused_is_sent_again_and_counted() -> None:
    with server(in_turn([REFUSED], [REFUSED], [ACCEPTED])) as port:
        load = post(port, requests(4), 1)
    assert (load.errors, load.answers) == (2, dict.fromkeys(range(4), b"ok"))


def test_what_a_connection_took_with_it_is_sent_again_on_another() -> None:
    with server(in_turn([ACCEPTED], None, None, [ACCEPTED])) as port:
        load = post(port, requests(4), 1)
    assert (load.errors, load.answers) == (2, dict.fromkeys(range(4), b"ok"))


def test_what_is_never_accepted_ends_the_run_with_its_answer() -> None:
    with server(in_turn([REFUSED])) as port, pytest.raises(BenchFailed, match=f"request 0 .* {TRIES} tries: 503 busy"):
        post(port, requests(1), 1)


def test_a_server_that_always_hangs_up_ends_the_run() -> None:
    with server(in_turn(None)) as port, pytest.raises(BenchFailed, match="the connection ended"):
        post(port, requests(1), 1)


def test_a_server_that_says_nothing_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_load, "SILENT_SECONDS", 0.05)
    with server(in_turn([b""])) as port, pytest.raises(BenchFailed, match="sent nothing"):
        post(port, requests(1), 1)


def test_an_answer_without_length_ends_the_run() -> None:
    with server(in_turn([b"HTTP/1.1 202 Accepted\r\n\r\n"])) as port, pytest.raises(BenchFailed, match="without its length"):
        post(port, requests(1), 1)
