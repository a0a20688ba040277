"""A relay in front of a database server that counts the commands of its clients: theirs alone, whoever else uses the server.

It sees every command of the protocol (statements, pings, changes of session), which the server's own counters do not, and cannot look
into TLS.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

HEADER_BYTES: Final = 4
"""Of a packet of the MySQL protocol: length (3 bytes, little endian) and sequence number, which is 0 for a new command."""


class Commands:
    """Finds the commands in what one client sends; the packets of its log-in are none."""

    def __init__(self) -> None:
        self._header = b""
        self._to_skip = 0

    def feed(self, data: bytes) -> int:
        """Number of commands that begin in these bytes."""
        begun = 0
        while data:
            if self._to_skip:
                skipped = min(self._to_skip, len(data))
                self._to_skip -= skipped
                data = data[skipped:]
                continue
            wanted = HEADER_BYTES - len(self._header)
            self._header, data = self._header + data[:wanted], data[wanted:]
            if len(self._header) == HEADER_BYTES:
                begun += self._header[3] == 0
                self._to_skip = int.from_bytes(self._header[:3], "little")
                self._header = b""
        return begun


class Relay(socketserver.ThreadingTCPServer):
    """`commands` is how many have begun so far."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._host, self._port = host, port
        self._lock = threading.Lock()
        self.commands = 0

    def url(self, direct: str) -> str:
        """A HEADRACE_DATABASE_URL that leads by way of this relay."""
        parts = urlsplit(direct)
        credentials = parts.netloc.rpartition("@")[0]
        return parts._replace(netloc=f"{credentials}@127.0.0.1:{self.server_address[1]}", query="").geturl()

    def connect(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, int(self._port)))
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(self._host)
        return upstream

    def count(self, commands: int) -> None:
        with self._lock:
            self.commands += commands


class _Handler(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        with self.server.connect() as upstream:
            for end in (self.request, upstream):
                with contextlib.suppress(OSError):  # a Unix socket has no such delay
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_pump, args=(upstream, self.request), daemon=True).start()
            commands = Commands()
            _pump(self.request, upstream, lambda data: self.server.count(commands.feed(data)))


def _pump(source: socket.socket, target: socket.socket, look: Callable[[bytes], object] = bytes) -> None:
    """Pass on what arrives, after a look at it, until either side ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            look(data)
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay(host: str, port: str) -> Iterator[Relay]:
    """A running relay, on a free port, to a server as a DATABASES entry names it: a host and port, or the path of a Unix socket."""
    with Relay(host, port) as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield made
        finally:
            made.shutdown()
