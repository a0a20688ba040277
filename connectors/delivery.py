"""Frozen facts of one delivery, as packs and signature schemes see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar, overload

T = TypeVar("T")


class Headers(Mapping[str, str]):
    """HTTP headers by case-insensitive name. A header sent twice keeps its last value; `count(name)` tells how often it came."""

    def __init__(self, pairs: Mapping[str, str] | Sequence[tuple[str, str]] = ()) -> None:
        items = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
        self._values = {name.lower(): value for name, value in items}
        self._counts = None if len(items) == len(self._values) else Counter(name.lower() for name, _ in items)

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    # Mapping's own would raise and catch a KeyError for each header that was not sent.
    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    @overload
    def get(self, name: str, /) -> str | None: ...
    @overload
    def get(self, name: str, default: str | T, /) -> str | T: ...
    def get(self, name: str, default: Any = None, /) -> Any:
        return self._values.get(name.lower(), default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Headers({sorted(self)})"  # names alone: values may be credentials

    def count(self, name: str) -> int:
        lowered = name.lower()
        return int(lowered in self._values) if self._counts is None else self._counts[lowered]

    def only(self, names: Sequence[str]) -> dict[str, str]:
        """The headers of these names that were sent, by lower-case name."""
        return {name.lower(): value for name in names if (value := self.get(name)) is not None}


class WsgiHeaders(Headers):
    """The headers of a WSGI environment (PEP 3333), looked up where they stand: nothing is copied for each delivery.

    What was sent twice stands there once, its values joined by commas.
    """

    def __init__(self, environ: Mapping[str, Any]) -> None:
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        return _as_sent(str(self._environ[_variable(name)]))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _variable(name) in self._environ

    @overload
    def get(self, name: str, /) -> str | None: ...
    @overload
    def get(self, name: str, default: str | T, /) -> str | T: ...
    def get(self, name: str, default: Any = None, /) -> Any:
        value = self._environ.get(_variable(name))
        return default if value is None else _as_sent(str(value))

    def __iter__(self) -> Iterator[str]:
        for variable in self._environ:
            if variable in _UNPREFIXED or variable.startswith("HTTP_"):
                yield variable.removeprefix("HTTP_").replace("_", "-").lower()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def count(self, name: str) -> int:
        return int(name in self)


def _as_sent(value: str) -> str:
    """A header's text. WSGI hands over its bytes as Latin-1 (PEP 3333); what is UTF-8 is read as that, so that an id is found again by
    the characters that its sender wrote. Other bytes stay Latin-1."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


_UNPREFIXED: Final = ("CONTENT_TYPE", "CONTENT_LENGTH")


@lru_cache(maxsize=256)
def _variable(name: str) -> str:
    """Where a WSGI environment has a header."""
    variable = name.upper().replace("-", "_")
    return variable if variable in _UNPREFIXED else f"HTTP_{variable}"


@dataclass(frozen=True, slots=True)
class IngressRequest:
    """One delivery as the pack sees it. `url` is the public URL that the provider called; `body` the exact bytes."""

    method: str
    url: str
    headers: Headers
    body: bytes = field(repr=False)
    sender: str = ""
    """The network that it came from, where that is known; no pack needs it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a signature check. `reason` is for the operator (never sent to the caller, never a secret or digest)."""

    ok: bool
    reason: str = ""
    hint: str = ""

    @property
    def sentence(self) -> str:
        """The reason, and the hint behind it where there is one."""
        return f"{self.reason}. {self.hint}" if self.hint else self.reason


@dataclass(frozen=True, slots=True)
class Item:
    """One event inside a body: its exact slice, its parsed value, its place and the request's headers.

    `envelope` is the parsed body around it where the pack needs that too (else None).
    """

    text: str
    value: Any
    index: int = 0
    headers: Headers = field(default_factory=Headers)
    envelope: Any = None

    def __getitem__(self, name: str) -> Any:
        return self.value[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.value.get(name, default) if isinstance(self.value, Mapping) else default


class NoRecord(Enum):
    """In the place of a source's id: the event is about no record, and its own delivery id stands for one."""

    NO_RECORD = "no record"


NO_RECORD: Final = NoRecord.NO_RECORD


@dataclass(frozen=True, slots=True)
class Inbound:
    """What a pack read out of one item.

    `kind` is the provider's kind; `source` (type, id), with NO_RECORD as id where it is news of no record; `lane` the record's order
    domain (None = the provider names none): one text, or its parts, such as ("order", 7), which are never taken for others that read
    alike. `delivery_id` identifies this event among all of
    its account (None = made from receipt and item number). `account` says whose record it is, where the delivery does (HubSpot's
    portal, Stripe's account); None: as the pack's `accounts` says.
    """

    kind: str
    source: tuple[str, str | int | NoRecord]
    lane: str | Sequence[str | int] | None = None
    delivery_id: str | None = None
    time: datetime | None = None
    account: str | int | None = None


LANE_PLACEHOLDERS: Final = ("id", "type", "kind", "lane", "account")
"""What a route may make a target mutation lane of: the source's id and type, the kind, lane and account of an `Inbound`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer of the pack's own making, for challenges and providers that want a certain body."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a delivery: the `code` and sentence of the JSON answer, e.g. `accepted`, `duplicate`, `unverified`.

    `receipt_id` is the first receipt of the delivery (of a conflict: the one that stands); `retry_after` is seconds.
    """

    code: str
    status: int
    receipt_id: int | None = None
    message: str = ""
    retry_after: int | None = None
    rejected_by: str | None = None
    """Of a duplicate of which something was rejected: what it was read by (`Pack.reading_key`)."""


@dataclass(frozen=True, slots=True)
class ReceiptDraft:
    """A receipt before it has an id. `conflict_hash` empty: the first body of its delivery id (or one without an id)."""

    namespace: str
    pack_id: int
    pack_incarnation: str
    endpoint_id: int
    idempotency_key: str | None
    idempotency_hash: str | None
    body: bytes = field(repr=False)
    body_sha256: str
    headers: str
    method: str
    url: str
    state: str
    account: str = ""
    """Of the endpoint when it was received: what a later change of it says is not true of what came before."""
    conflict_hash: str = ""
    received_at: datetime | None = None
    """Aware; None: now, by the database's clock."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one payload does to its source record (for `record_table`)."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    lifecycle: str = ""
    """`created`, `deleted`, `restored`, `merged` or empty: no change of the record's existence."""
    merged_into: str | None = None


class SignatureScheme(Protocol):
    """How one provider signs. `secrets` are all live ones: any may match."""

    @property
    def name(self) -> str: ...

    @property
    def needs_secret(self) -> bool: ...

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that the check reads: kept, encrypted, with an unverified delivery so that it can be checked again."""
        ...

    def verify(self, request: IngressRequest, secrets: Sequence[str], now: float) -> Verdict:
        """`now` is Unix time in seconds. Never raises for anything that a caller can send."""
        ...

    def check_secret(self, secret: str) -> None:
        """Raises ValueError, naming what is wrong, for a secret that cannot be one (empty, not base64 …)."""
        ...
