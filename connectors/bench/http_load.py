"""A lean HTTP client: posts prepared requests over connections that stay open, one at a time on each, as fast as the answers come.

One thread and one selector, no parsing beyond status and length: what the client costs is missing to the server under test, which
shares the machine. (http.client costs several times as much, and so makes any two servers look alike.)
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter, thread_time
from typing import Final

from connectors.bench.workbench import BenchFailed

PIECE_BYTES: Final = 65_536
SILENT_SECONDS: Final = 30.0
TRIES: Final = 5
"""Of one request that is refused, or whose connection ends: providers send again, too."""
LENGTH: Final = b"\r\ncontent-length:"


@dataclass(slots=True)
class Load:
    """What came of a number of requests."""

    answers: dict[int, bytes] = field(default_factory=dict)
    """Bodies of the accepted answers (2xx), by the request's number."""
    latencies: list[float] = field(default_factory=list)
    """Seconds from the first sending of each request to its accepted answer."""
    errors: int = 0
    """Refusals and connections that ended; each made its request be sent again."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """The client's own."""

    def add(self, other: Load) -> None:
        self.answers |= other.answers
        self.latencies += other.latencies
        self.errors += other.errors
        self.seconds += other.seconds
        self.cpu_seconds += other.cpu_seconds


def post(port: int, requests: Mapping[int, bytes], concurrency: int) -> Load:
    """Post `requests` (number → the whole text) to a port of loopback, `concurrency` at once; returns when all are accepted.

    Raises BenchFailed when the server is silent, or has refused a request `TRIES` times.
    """
    load, waiting = Load(), iter(requests.items())
    started, cpu = perf_counter(), thread_time()
    with selectors.DefaultSelector() as selector:
        try:
            for _ in range(min(concurrency, len(requests))):
                sender = _Sender(port, waiting, load)
                selector.register(sender.socket, selectors.EVENT_READ, sender)
            while len(load.answers) < len(requests):
                ready = selector.select(SILENT_SECONDS)
                if not ready:
                    raise BenchFailed(f"the web server sent nothing for {SILENT_SECONDS:g} s")
                for key, _ in ready:
                    sender = key.data
                    if not sender.receive():
                        selector.unregister(key.fileobj)
                        sender.connect()
                        selector.register(sender.socket, selectors.EVENT_READ, sender)
        finally:
            for key in list(selector.get_map().values()):
                key.data.socket.close()
    load.seconds, load.cpu_seconds = perf_counter() - started, thread_time() - cpu
    return load


class _Sender:
    """One connection, and the request that it has under way."""

    def __init__(self, port: int, waiting: Iterator[tuple[int, bytes]], load: Load) -> None:
        self._port, self._waiting, self._load = port, waiting, load
        self._text: bytes | None = None
        self._next()
        self.connect()

    def connect(self) -> None:
        """A fresh connection; the request under way is sent on it, again if need be."""
        self._received = b""
        self.socket = socket.create_connection(("127.0.0.1", self._port), SILENT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._send()

    def receive(self) -> bool:
        """Take what has arrived; with the end of an answer, send what comes next. False: the connection has ended."""
        try:
            piece = self.socket.recv(PIECE_BYTES)
            self._received += piece
            answer = _answer(self._received) if piece else None
            if answer is not None:
                self._received = b""
                self._take(*answer)
        except ConnectionError:
            piece = b""
        if not piece:
            self.socket.close()
            self._refused("the connection ended")
        return bool(piece)

    def _take(self, status: int, body: bytes) -> None:
        if 200 <= status < 300:
            self._load.answers[self._number] = body
            self._load.latencies.append(perf_counter() - self._since)
            self._next()
        else:
            self._refused(f"{status} {body.decode('utf-8', 'replace')[:200]}")
        self._send()

    def _next(self) -> None:
        self._number, self._text = next(self._waiting, (-1, None))
        self._since, self._tries = perf_counter(), 0

    def _send(self) -> None:
        if self._text is not None:
            self.socket.sendall(self._text)

    def _refused(self, said: str) -> None:
        """Raises BenchFailed when the request was sent often enough."""
        if self._text is None:
            return
        self._load.errors += 1
        self._tries += 1
        if self._tries >= TRIES:
            raise BenchFailed(f"request {self._number} was not accepted in {TRIES} tries: {said}")


def _answer(received: bytes) -> tuple[int, bytes] | None:
    """Status and body of a whole answer; None while some of it is missing. Both servers declare the length of each."""
    head, blank, body = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    length = head.lower().partition(LENGTH)[2].partition(b"\r\n")[0].strip()
    if not length.isdigit():
        raise BenchFailed(f"an answer without its length: {head[:200]!r}")
    return (int(head[9:12]), body) if len(body) >= int(length) else None
