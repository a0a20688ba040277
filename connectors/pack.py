"""The Pack contract and its registry: what Headrace must know about one provider, in one class.

A pack is stateless beyond its `settings`; it never touches the database. To add a provider, add `packs/<provider>/__init__.py`
with a subclass (README, "Your own pack").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol

from projection.exact_json import NotJson

DEFAULT_MAX_BODY_BYTES: Final = 5 * 1024 * 1024


class Headers(Mapping[str, str]):
    """HTTP headers by case-insensitive name. A header sent twice keeps its last value; `count(name)` tells how often it came."""

    def __init__(self, pairs: Mapping[str, str] | Sequence[tuple[str, str]] = ()) -> None:
        items = pairs.items() if isinstance(pairs, Mapping) else pairs
        self._values: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        for name, value in items:
            lowered = name.lower()
            self._values[lowered] = value
            self._counts[lowered] = self._counts.get(lowered, 0) + 1

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def count(self, name: str) -> int:
        return self._counts.get(name.lower(), 0)


@dataclass(frozen=True, slots=True)
class IngressRequest:
    """One delivery as the pack sees it. `url` is the public URL that the provider called; `body` the exact bytes."""

    method: str
    url: str
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a signature check. `reason` is for the operator (never sent to the caller, never a secret or digest)."""

    ok: bool
    reason: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One event inside a body: its exact slice, its parsed value, its place and the request's headers."""

    text: str
    value: Any
    index: int = 0
    headers: Headers = field(default_factory=Headers)

    def __getitem__(self, name: str) -> Any:
        return self.value[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.value.get(name, default) if isinstance(self.value, Mapping) else default


@dataclass(frozen=True, slots=True)
class Inbound:
    """What a pack read out of one item.

    `kind` is the provider's kind; `source` (type, id); `lane` the record's order domain (None = the provider names none);
    `delivery_id` identifies this event among all of the pack's (None = made from receipt and item number).
    """

    kind: str
    source: tuple[str, str | int]
    lane: str | None = None
    delivery_id: str | None = None
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer of the pack's own making, for challenges and providers that want a certain body."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a delivery: the `code` of the JSON answer, e.g. `accepted`, `duplicate`, `unverified`."""

    code: str
    status: int
    receipt_id: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What one payload does to its source record (for `record_table`)."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    lifecycle: str = ""
    """`created`, `deleted`, `restored`, `merged` or empty: no change of the record's existence."""
    merged_into: str | None = None


class SignatureScheme(Protocol):
    """How one provider signs. `secrets` are all live ones: any may match."""

    name: str
    needs_secret: bool

    def verify(self, request: IngressRequest, secrets: Sequence[str], now: float) -> Verdict:
        """`now` is Unix time in seconds. Never raises for anything that a caller can send."""
        ...

    def check_secret(self, secret: str) -> None:
        """Raises ValueError, naming what is wrong, for a secret that cannot be one (empty, not base64 …)."""
        ...


class Unreadable(ValueError):
    """The body or item does not have the shape that this provider documents; the message says what is missing."""


class Pack(ABC):
    """One provider. Subclasses set the class attributes and implement `split` and `read`."""

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    signature: ClassVar[SignatureScheme]
    max_body_bytes: ClassVar[int] = DEFAULT_MAX_BODY_BYTES
    kept_headers: ClassVar[tuple[str, ...]] = ()
    """Headers stored with the receipt, beside content-type and user-agent. Never one that carries a credential."""
    provider_retries: ClassVar[bool] = True
    """Whether the provider sends a refused delivery again by itself."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        """Raises ValueError naming the setting that is wrong."""
        self.settings = dict(settings or {})

    def scheme(self) -> SignatureScheme:
        """The signature scheme in force (a configurable pack chooses it by its settings)."""
        return self.signature

    def verify(self, request: IngressRequest, secrets: Sequence[str], now: float) -> Verdict:
        return self.scheme().verify(request, secrets, now)

    def delivery_id(self, request: IngressRequest) -> str | None:
        """The provider's id of the whole request; None (or blank) when it sends none."""
        return None

    @abstractmethod
    def split(self, body: bytes) -> Sequence[Item]:
        """The items of a body, exact slices in order. Raises NotJson or Unreadable for a body that has no items to speak of."""

    def split_request(self, request: IngressRequest) -> Sequence[Item]:
        """As `split`, for packs whose body format depends on a header; the items carry the request's headers."""
        return [Item(item.text, item.value, item.index, request.headers) for item in self.split(request.body)]

    @abstractmethod
    def read(self, item: Item) -> Inbound | Sequence[Inbound]:
        """What happened, to which record. Several when one item is about several records. Raises Unreadable (or KeyError)."""

    def handshake(self, request: IngressRequest) -> Answer | None:
        """Answer to a provider's challenge; None = this is an ordinary delivery."""
        return None

    def acknowledge(self, outcome: Outcome) -> Answer | None:
        """The provider's own form of answer; None = Headrace's JSON."""
        return None

    def change(self, kind: str, payload: Any) -> Change:
        """How a payload changes its record. Default: every top-level member of an object is a property."""
        return Change(properties=payload if isinstance(payload, Mapping) else {"value": payload})


class DuplicatePack(ValueError):
    """Two modules define a pack of the same name; rename one of them."""


_registry: dict[str, type[Pack]] = {}


def register(cls: type[Pack]) -> type[Pack]:
    """Class decorator: make a pack known under its `name`. Raises DuplicatePack."""
    known = _registry.get(cls.name)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise DuplicatePack(f"pack {cls.name!r} is defined by {known.__module__} and again by {cls.__module__}")
    _registry[cls.name] = cls
    return cls


def registered() -> dict[str, type[Pack]]:
    """Every pack class of this process, by name."""
    return dict(_registry)


def find(name: str) -> type[Pack] | None:
    return _registry.get(name)


__all__ = [
    "Answer",
    "Change",
    "DuplicatePack",
    "Headers",
    "Inbound",
    "IngressRequest",
    "Item",
    "NotJson",
    "Outcome",
    "Pack",
    "SignatureScheme",
    "Unreadable",
    "Verdict",
    "find",
    "register",
    "registered",
]
