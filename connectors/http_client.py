"""The HTTP client for flows that post to foreign systems: bounded in time, to public addresses, without surprises.

- The address is checked where the connection is made, on what the name resolved to just then, and that very address is connected
  to: a name that resolves to something else a moment later (DNS rebinding) changes nothing.
- No redirects, no proxy from the environment, no cookies; TLS certificates are verified (SSL_CERT_FILE names further authorities).
- Every wait has a limit of its own, and `deadline` bounds a request as a whole, however slowly the other side sends.
  (Only the system's name resolution cannot be interrupted; it has its own time-out.)
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, NoReturn, Self

import httpcore
import httpx
from django.conf import settings

from connectors import addresses
from projection.facts import ALIVE, Outage, Seen
from projection.limits import destinations
from projection.safe_text import error_text

TIMEOUT: Final = httpx.Timeout(connect=5.0, read=20.0, write=10.0, pool=5.0)
"""Seconds. Standard Webhooks recommends that a receiver is given 15 to 30 s to answer."""
MAX_CONNECTIONS: Final = 32
"""Of one destination and process: more than a worker runs side by side for one destination."""
KEEPALIVE_SECONDS: Final = 4.0
"""Idle connections end before the receiver's own limit (commonly 5 s) cuts them under a request."""
WRITE_PIECE: Final = 64 * 1024

_ends_at: ContextVar[float | None] = ContextVar("ends_at", default=None)


class AddressRefused(httpx.ConnectError):
    """The destination resolves to an address that flows may not connect to."""


class BadUrl(ValueError):
    """The URL cannot be a destination; the message says why, without the URL (it may hold a credential)."""


def check_url(text: str) -> httpx.URL:
    """The URL of a destination, parsed. Raises BadUrl."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise BadUrl(f"the URL is malformed: {error}") from None
    if url.scheme not in ("http", "https"):
        raise BadUrl("the URL must start with https:// or http://")
    if not url.host:
        raise BadUrl("the URL has no host")
    if url.userinfo:
        raise BadUrl("the URL contains a user name or password; remove it, requests are signed instead")
    if url.port is not None and not 1 <= url.port <= 65_535:
        raise BadUrl("the URL has an invalid port; use 1 to 65535")
    return url


@contextmanager
def deadline(at: datetime) -> Iterator[None]:
    """Bound all requests inside: at `at` (aware UTC, this host's clock) they end with httpx.TimeoutException. Limits nest."""
    ends = time.monotonic() + (at - datetime.now(UTC)).total_seconds()
    outer = _ends_at.get()
    token = _ends_at.set(ends if outer is None else min(ends, outer))
    try:
        yield
    finally:
        _ends_at.reset(token)


def _bounded(timeout: float | None, error: type[httpcore.TimeoutException]) -> float | None:
    """`timeout` cut to what is left of the deadline; raises `error` when nothing is left."""
    ends = _ends_at.get()
    if ends is None:
        return timeout
    left = ends - time.monotonic()
    if left <= 0:
        raise error("the request timed out")
    return left if timeout is None else min(timeout, left)


class _Stream(httpcore.NetworkStream):
    """A connection whose every wait ends at the deadline."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _bounded(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In pieces: a time-out of the socket's starts again with each piece that the other side takes.
        for start in range(0, len(buffer), WRITE_PIECE):
            self._inner.write(buffer[start : start + WRITE_PIECE], _bounded(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _bounded(timeout, httpcore.ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """Resolves, checks and connects to the checked address."""

    def __init__(self, allowed: Iterable[addresses.Network]) -> None:
        self._allowed = tuple(allowed)
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception | None = None
        for address in self._reachable(host, port):
            try:
                limit = _bounded(timeout, httpcore.ConnectTimeout)
                return _Stream(self._inner.connect_tcp(address, port, limit, local_address, socket_options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:  # the next address may answer
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    def _reachable(self, host: str, port: int) -> list[str]:
        """The addresses of `host` that may be connected to. Raises AddressRefused when there are only others."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from None
        known = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        allowed = [address for address in known if addresses.is_allowed(address.partition("%")[0], self._allowed)]
        if known and not allowed:
            raise AddressRefused(
                f"{host} resolves to {', '.join(known)}, which is not a public address; "
                "add its network to HEADRACE_FORWARD_ALLOWED_NETWORKS to allow it"
            )
        return allowed


def _raise_httpx(error: Exception) -> NoReturn:
    """httpx's exception for httpcore's, which have the same names."""
    raise getattr(httpx, type(error).__name__)(str(error)) from error


_HTTPCORE_ERRORS: Final = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol)


class _Body(httpx.SyncByteStream):
    def __init__(self, inner: Iterable[bytes]) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._inner
        except _HTTPCORE_ERRORS as error:
            _raise_httpx(error)

    def close(self) -> None:
        if hasattr(self._inner, "close"):
            self._inner.close()


class _Transport(httpx.BaseTransport):
    """httpx over a pool whose connections are made by `_Backend`."""

    def __init__(self, allowed: Iterable[addresses.Network]) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=MAX_CONNECTIONS,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=_Backend(allowed),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        core = httpcore.Request(
            request.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = self._pool.handle_request(core)
        except _HTTPCORE_ERRORS as error:
            _raise_httpx(error)
        body: Any = answer.stream
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(body), extensions=answer.extensions)

    def close(self) -> None:
        self._pool.close()


_NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_SECONDS: Final = re.compile(r"\d+(\.\d+)?", re.ASCII)
LONGEST_DELAY_SECONDS: Final = 86_400.0
"""Of a Retry-After: nobody parks a destination for years."""


def retry_after_seconds(header: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After: a number (decimals allowed) or an HTTP date; a date in the past is 0, anything else None.

    At most LONGEST_DELAY_SECONDS, however many digits it has.
    """
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_DELAY_SECONDS)
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    seconds = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    return min(max(0.0, seconds), LONGEST_DELAY_SECONDS)


def outage_of_status(status: int, retry_after: str | None, reason: str, now: datetime) -> Outage | None:
    """What an answer says of the destination as a whole: 429 and 5xx are outages, everything else is an answer (None).

    429 and 503 speak of everybody; after another 5xx the request itself may be at fault. Where others get through meanwhile it is at fault,
    but for a 429 with Retry-After: there the requests of all are counted.
    """
    if status != 429 and status < 500:
        return None
    wait = retry_after_seconds(retry_after, now)
    return Outage(reason, status in (429, 503), wait, answered=status != 429 or wait is None)


@destinations.reader
def _outage_of(error: BaseException) -> Outage | Seen | None:
    """Of the exceptions of this client, in any flow that uses it."""
    if isinstance(error, AddressRefused | httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        return None  # our own refusal, or our own fault
    if isinstance(error, httpx.HTTPStatusError):
        answer = error.response
        return (
            outage_of_status(answer.status_code, answer.headers.get("retry-after"), error_text(error), datetime.now(UTC)) or ALIVE
        )
    if isinstance(error, httpx.TransportError):
        return Outage(error_text(error), certain=isinstance(error, _NEVER_SENT))
    return None


class _SharedClient(httpx.Client):
    """Belongs to the process and to all its flows: `close`, and the end of a `with` block, leave it open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing: other flows use it."""

    def close(self) -> None:
        """Nothing, as above."""

    def end(self) -> None:
        """Close its connections; it cannot be used any more."""
        super().close()


_clients: dict[str, _SharedClient] = {}
_lock = threading.Lock()


def client(destination: str = "default") -> httpx.Client:
    """The client of this process for a destination: thread-safe, reused, made when first asked for.

    `with client(…) as c:` and `close()` are harmless: it stays open for other flows.
    """
    with _lock:
        if destination not in _clients:
            _clients[destination] = _new_client()
        return _clients[destination]


def _new_client() -> _SharedClient:
    return _SharedClient(
        transport=_Transport(addresses.networks(settings.HEADRACE_FORWARD_ALLOWED_NETWORKS)),
        timeout=TIMEOUT,
        follow_redirects=False,
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        headers={"user-agent": "Headrace", "accept-encoding": "identity"},
    )


def close_clients() -> None:
    """Close every client of this process (end of a process, tests)."""
    with _lock:
        for each in _clients.values():
            each.end()
        _clients.clear()


def _start_anew_after_fork() -> None:
    # The parent's connections are the parent's: two processes writing to one of them would mix their requests. They are dropped
    # unclosed (closing would end TLS for the parent), and the lock may have been held by a thread that does not exist here.
    global _lock, _clients
    _lock, _clients = threading.Lock(), {}


os.register_at_fork(after_in_child=_start_anew_after_fork)
