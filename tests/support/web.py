"""A real gunicorn on the suite's database, and raw requests to it: what no client library would send."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection

CHECKOUT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


class Web:
    """`pid` is gunicorn's master."""

    def __init__(self, port: int, pid: int, log: Path) -> None:
        self.port, self.pid, self.log = port, pid, log

    def talk(self, *parts: bytes, end: bool = False) -> Reply:
        """Send the parts as they are, then read one answer. `end` closes our direction first."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS) as peer:
            for part in parts:
                peer.sendall(part)
            if end:
                peer.shutdown(socket.SHUT_WR)
            return _reply(peer)

    def post(self, path: str, body: bytes, headers: Mapping[str, str], **options: Any) -> Reply:
        return self.talk(head(path, {"Content-Length": str(len(body)), **headers}), body, **options)


def head(path: str, headers: Mapping[str, str], method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: whatever.example", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunked(body: bytes, size: int = 50_000) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _reply(peer: socket.socket) -> Reply:
    """One answer, whole. Raises IndexError for none at all and ConnectionError for one that breaks off."""
    stream = peer.makefile("rb")
    status = int(stream.readline().split()[1])
    headers: dict[str, str] = {}
    while (line := stream.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    body = stream.read(length)
    if line == b"" or len(body) < length:
        raise ConnectionError("the answer broke off")
    return Reply(status, headers, body)


def suite_database_url() -> str:
    """HEADRACE_DATABASE_URL of the database that the tests of this process use."""
    base, mark, query = os.environ["HEADRACE_DATABASE_URL"].partition("?")
    return f"{base.rpartition('/')[0]}/{connection.settings_dict['NAME']}{mark}{query}"


@contextmanager
def serving(folder: Path, application: str = "ops_ui.wsgi", *options: str, **settings: str) -> Iterator[Web]:
    """gunicorn under the project's configuration; the socket is ours, so a request waits until a worker is there.

    `options` are gunicorn's.
    """
    environment = os.environ | {
        "HEADRACE_DATABASE_URL": suite_database_url(),
        "HEADRACE_STATE_DIR": str(folder),
        "DJANGO_SETTINGS_MODULE": "ops_ui.settings",
        **settings,
    }
    with closing(socket.create_server(("127.0.0.1", 0), backlog=128)) as listener, (folder / "web.log").open("wb") as log:
        fd = listener.fileno()
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "--config",
            "python:ops_ui.gunicorn_conf",
            "--bind",
            f"fd://{fd}",
            *options,
            application,
        ]
        process = subprocess.Popen(command, cwd=CHECKOUT, env=environment, pass_fds=(fd,), stdout=log, stderr=log)
        try:
            yield Web(listener.getsockname()[1], process.pid, folder / "web.log")
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
