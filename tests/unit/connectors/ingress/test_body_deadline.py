"""A sender that never ends its body keeps no thread of the web server."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from connectors.delivery import Outcome
from connectors.ingress import body_deadline
from connectors.ingress.body import read_body
from connectors.ingress.body_deadline import cut_off_later
from connectors.ingress.body_memory import BodyRoom, Hold


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    sender, receiver = socket.socketpair()
    with sender, receiver:
        receiver.settimeout(30)
        yield sender, receiver


def test_a_body_that_never_ends_is_incomplete_after_a_while(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_deadline, "BODY_SECONDS", 0.1)
    sender, receiver = pair
    sender.sendall(b"{")
    environ = {"CONTENT_LENGTH": "1000", "wsgi.input": receiver.makefile("rb"), "gunicorn.socket": receiver}
    found = read_body(environ, 10_000, Hold(BodyRoom()))
    assert isinstance(found, Outcome)
    assert (found.code, found.status) == ("body_incomplete", 400)
    receiver.sendall(b"the answer still goes out")
    assert sender.recv(100) == b"the answer still goes out"


def test_a_connection_is_left_alone_once_its_body_is_read(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_deadline, "BODY_SECONDS", 0.0)
    monkeypatch.setattr(body_deadline, "TICK_SECONDS", 0.01)
    sender, receiver = pair
    with cut_off_later(receiver):
        pass
    time.sleep(1.2)  # longer than the watcher sleeps
    sender.sendall(b"the next request")
    assert receiver.recv(100) == b"the next request"
