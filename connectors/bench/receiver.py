"""A web server on loopback that takes what `http_forward` posts, and notes when it came."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from time import monotonic


class Receiver:
    """`moments` gets the time (`monotonic()`) at which each request had arrived with its body."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/"
        self.moments: SimpleQueue[float] = SimpleQueue()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    receiver: Receiver

    def handle_error(self, request: object, client_address: object) -> None:
        """Silent: a client that is killed resets its connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.server.receiver.moments.put(monotonic())
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Silent: what arrived is counted."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A running receiver on a free port."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        receiver = server.receiver = Receiver(int(server.server_address[1]))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield receiver
        finally:
            server.shutdown()
