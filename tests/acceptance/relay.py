"""A relay in front of a database server that counts the commands of its clients: theirs alone, whoever else uses the server."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from ops_ui.database_url import database

HEADER_BYTES = 4
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
    daemon_threads = True
    block_on_close = False

    def __init__(self, url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._upstream = database(url)
        self._lock = threading.Lock()
        self.commands = 0
        parts = urlsplit(url)
        credentials = parts.netloc.rpartition("@")[0]
        self.url = f"{parts.scheme}://{credentials}@127.0.0.1:{self.server_address[1]}{parts.path}"

    def connect(self) -> socket.socket:
        host, port = str(self._upstream["HOST"]), self._upstream["PORT"]
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(host)
        return upstream

    def count(self, commands: int) -> None:
        with self._lock:
            self.commands += commands


class _Handler(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        with self.server.connect() as upstream:
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
def relay(url: str) -> Iterator[Relay]:
    """A running relay to the server of `url`, on a free port; its own `url` leads through it."""
    with Relay(url) as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield made
        finally:
            made.shutdown()
