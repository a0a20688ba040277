"""A real HTTP server on loopback that takes forwarded generations, as a user's service would."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any, ClassVar, TypeVar


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Reply:
    """What the server answers, once `wait` has returned. `stream` writes the body itself, onto the raw connection."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    stream: Callable[[Any], None] | None = None
    wait: Callable[[], object] | None = None


class Receiver:
    """Requests arrive in `requests`; replies come from `replies` in order, then `reply` for all further ones."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.server = server
        self.port: int = server.server_address[1]
        self.requests: Queue[Received] = Queue()
        self.replies: Queue[Reply] = Queue()
        self.reply = Reply()
        self.connections = 0

    def url(self, path: str = "/hook", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def next_reply(self) -> Reply:
        return self.replies.get_nowait() if not self.replies.empty() else self.reply


R = TypeVar("R", bound=Receiver)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    receiver: ClassVar[Receiver]

    def setup(self) -> None:
        super().setup()
        self.receiver.connections += 1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.receiver.requests.put(Received(self.path, headers, body))
        reply = self.receiver.next_reply()
        if reply.wait is not None:
            reply.wait()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.stream is None:
            self.send_header("content-length", str(len(reply.body)))
        try:
            self.end_headers()
            if reply.stream is None:
                self.wfile.write(reply.body)
            else:
                self.close_connection = True
                reply.stream(self.wfile)
        except (BrokenPipeError, ConnectionResetError):
            return  # the client has read enough, or waits no longer

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the tests look at what arrived."""


@contextmanager
def receiving(wrap: Callable[[Any], Any] | None = None, kind: type[R] = Receiver) -> Iterator[R]:
    """A running receiver on a free port of 127.0.0.1; `wrap` may put TLS around its socket."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.block_on_close = False
    if wrap is not None:
        server.socket = wrap(server.socket)
    receiver = handler.receiver = kind(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
