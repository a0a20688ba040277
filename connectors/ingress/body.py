"""Reading a request's body from the WSGI server, bounded, also when it comes in chunks.

Django's own reading is not used: it knows no chunked bodies and has a limit of its own, below the one that we promise.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any, Final

from connectors.delivery import Outcome
from connectors.ingress.body_deadline import cut_off_later
from connectors.ingress.body_memory import SMALL_BYTES, Hold

PIECE_BYTES: Final = 64 * 1024
HELD_BYTES: Final = 1024 * 1024
"""The steps in which a body's share of the room grows."""
DRAIN_MOST_BYTES: Final = 32 * 1024 * 1024
"""Of an unread body this much is read and dropped after the answer: a sender that still writes would get a reset, not the answer."""
DRAIN_SECONDS: Final = 5.0


_INCOMPLETE: Final = Outcome("body_incomplete", 400, message="The body ended before its declared length; nothing was stored.")
_BUSY: Final = Outcome(
    "busy", 503, message="Too many large deliveries at the same time; please send the delivery again.", retry_after=10
)
_LENGTH_REQUIRED: Final = Outcome("length_required", 411, message="This server needs a Content-Length header.")


def read_body(environ: Mapping[str, Any], limit: int, hold: Hold) -> bytes | Outcome:
    """The exact body, at most `limit` bytes, or the refusal to answer: 413, 415, 411, 400, or 503 without room in `hold`. Never raises.

    A declared length above the limit is refused without reading; under gunicorn a body that comes too slowly is cut off.
    """
    encoding = environ.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in ("", "identity"):
        return Outcome("unsupported_encoding", 415, message="The body is compressed; send it without Content-Encoding.")
    if "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower():
        return _read_in_time(environ, None, limit, hold) if environ.get("wsgi.input_terminated") else _LENGTH_REQUIRED
    declared = environ.get("CONTENT_LENGTH") or "0"
    if not (declared.isascii() and declared.isdigit()) or len(declared) > 18:
        return Outcome("bad_length", 400, message="The Content-Length header is not a number.")
    length = int(declared)
    return too_large(limit) if length > limit else _read_in_time(environ, length, limit, hold)


def too_large(limit: int) -> Outcome:
    return Outcome("too_large", 413, message=f"The body is larger than the {limit} bytes that this endpoint accepts.")


def _read_in_time(environ: Mapping[str, Any], length: int | None, limit: int, hold: Hold) -> bytes | Outcome:
    with cut_off_later(environ.get("gunicorn.socket")):
        return _read(environ["wsgi.input"], length, limit, hold)


def _read(stream: Any, length: int | None, limit: int, hold: Hold) -> bytes | Outcome:
    pieces: list[bytes] = []
    size = 0
    most = limit + 1 if length is None else length
    try:
        while size < most and (piece := stream.read(min(PIECE_BYTES, most - size))):
            pieces.append(piece)
            size += len(piece)
            # For what is there, never for what a header declares: a stranger could hold the room with a few bytes.
            if size > SMALL_BYTES and not hold.take(min(most, -(-size // HELD_BYTES) * HELD_BYTES)):
                return _BUSY
    except Exception:  # noqa: BLE001 - each WSGI server has errors of its own for a body that breaks off or is no valid chunking
        return _INCOMPLETE
    if length is not None and size < length:
        return _INCOMPLETE
    return too_large(limit) if size > limit else b"".join(pieces)


def drain(environ: Mapping[str, Any]) -> None:
    """Read and drop what the sender still writes, after it was answered: bounded in bytes and seconds. Only under gunicorn."""
    socket, stream = environ.get("gunicorn.socket"), environ.get("wsgi.input")
    if socket is None or stream is None:
        return
    until, dropped = time.monotonic() + DRAIN_SECONDS, 0
    before = socket.gettimeout()
    # Whatever goes wrong here, the answer is out already; gunicorn closes a connection whose body it cannot finish.
    with contextlib.suppress(Exception):
        while dropped < DRAIN_MOST_BYTES and (left := until - time.monotonic()) > 0:
            socket.settimeout(left)
            piece = stream.read(PIECE_BYTES)
            if not piece:
                break
            dropped += len(piece)
    with contextlib.suppress(OSError):
        socket.settimeout(before)
