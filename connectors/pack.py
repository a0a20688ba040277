"""The Pack contract and its registry: what Headrace must know about one provider, in one class.

A pack is stateless beyond its `settings`; it never touches the database. To add a provider, add `packs/<provider>/__init__.py`
with a subclass (checklist: `connectors/packs/README.md`). Everything that such a module needs is imported from here.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final, Literal

from connectors.delivery import (
    NO_RECORD,
    Answer,
    Change,
    Headers,
    Inbound,
    IngressRequest,
    Item,
    Outcome,
    SignatureScheme,
    Verdict,
)
from connectors.sample_delivery import Sample, of_fixture
from connectors.signatures import hmac_sha256, token, unsigned
from projection import exact_json
from projection.exact_json import NotJson

DEFAULT_MAX_BODY_BYTES: Final = 5 * 1024 * 1024


MOST_ITEMS: Final = 100_000
"""Items of one body that are read: each becomes a row of one transaction, and five MiB may hold two million of them."""


Accounts = Literal["endpoint", "delivery", "none"]


class Unreadable(ValueError):
    """The body or item does not have the shape that this provider documents; the message says what is missing."""


def json_items(body: bytes, *path: str | int) -> list[Item]:
    """The items of a JSON body as exact slices, in order.

    With a path (`json_items(body, "events")`) the elements of the array there; without one, the elements of a body that is an
    array, else the body itself as the only item. The value of an item that is nested too deeply may be None; it is rejected whatever
    the pack reads in it. Raises NotJson, or Unreadable when there is no array at the path.
    """
    text = exact_json.decode(body)
    value = exact_json.parse_unless_deep(text)
    if not path and text.lstrip(" \t\r\n")[:1] != "[":
        return [Item(text.strip(" \t\r\n"), value)]
    at = exact_json.value_at(text, path)
    if at is None or text[at] != "[":
        raise Unreadable(f"the body has no array at {'.'.join(map(str, path))!r}")
    found = enumerate(islice(exact_json.elements(text, at), MOST_ITEMS + 1))
    items = [Item(slice_, element, index) for index, (slice_, element) in found]
    refuse_too_many(len(items))
    return items


def refuse_too_many(items: int) -> None:
    """Raises Unreadable for more than MOST_ITEMS items."""
    if items > MOST_ITEMS:
        raise Unreadable(f"the body has more than {MOST_ITEMS} items, the maximum per delivery; send smaller batches")


class DuplicatePack(ValueError):
    """Two modules define a pack of the same name; rename one of them."""


class Pack(ABC):
    """One provider. Subclasses set the class attributes and implement `split` and `read`; a class with a `name` is registered."""

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    signature: ClassVar[SignatureScheme]
    other_signatures: ClassVar[tuple[SignatureScheme, ...]] = ()
    """What an endpoint may choose instead, by its `signature`."""
    max_body_bytes: ClassVar[int] = DEFAULT_MAX_BODY_BYTES
    kept_headers: ClassVar[tuple[str, ...]] = ()
    """Headers stored with the receipt, beside content-type and user-agent. Never one that carries a credential."""
    accounts: ClassVar[Accounts] = "endpoint"
    """Whose records a delivery is about. `endpoint`: the ids are the sender's own, so each endpoint (or those that are declared the
    same `account`) is a sender of its own; `delivery`: `Inbound.account` says; `none`: the provider's ids are unique by themselves."""
    provider_retries: ClassVar[bool] = True
    """Whether the provider sends a refused delivery again by itself."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            register(cls)

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        """Raises ValueError naming the setting that is wrong."""
        self.settings = dict(settings or {})

    def reading_key(self, incarnation: str) -> str:
        """Digest of what decides how this pack reads: its installed incarnation and settings. A receipt keeps that of its last reading."""
        settings = json.dumps(self.settings, sort_keys=True, default=float)
        return hashlib.sha256(f"{incarnation} {settings}".encode()).hexdigest()

    def refuse_unknown_settings(self, known: Sequence[str]) -> None:
        """Raises ValueError, naming the known ones, when there is a setting of another name."""
        unknown = sorted(set(self.settings) - set(known))
        if unknown:
            raise ValueError(f"{self.name} has no setting {unknown[0]!r}; it has {', '.join(known)}")

    def scheme(self) -> SignatureScheme:
        """The signature scheme in force (a configurable pack chooses it by its settings)."""
        return self.signature

    def scheme_named(self, name: str) -> SignatureScheme:
        """The scheme that an endpoint chose; empty: the one in force. Raises ValueError, naming those that there are."""
        schemes = {scheme.name: scheme for scheme in (*self.other_signatures, self.scheme())}
        if name and name not in schemes:
            raise ValueError(f"pack {self.name!r} checks deliveries by {' or '.join(reversed(schemes))}, not {name}")
        return schemes[name] if name else self.scheme()

    def verify(self, request: IngressRequest, secrets: Sequence[str], now: float) -> Verdict:
        """By the scheme in force; an endpoint that chose another one is checked by that."""
        return self.scheme().verify(request, secrets, now)

    def stored_headers(self) -> tuple[str, ...]:
        """Names of the headers that a receipt keeps (a configurable pack adds those that its settings name)."""
        return ("content-type", "user-agent", *self.kept_headers)

    def delivery_id(self, request: IngressRequest) -> str | None:  # noqa: ARG002  # a default
        """The provider's id of the whole request; None (or blank) when it sends none."""
        return None

    @abstractmethod
    def split(self, body: bytes) -> Sequence[Item]:
        """The items of a body, exact slices in order. Raises NotJson or Unreadable for a body that has no items to speak of."""

    def split_request(self, request: IngressRequest) -> Sequence[Item]:
        """As `split`, for packs whose body format depends on a header; the items carry the request's headers."""
        found = islice(self.split(request.body), MOST_ITEMS + 1)
        return [Item(item.text, item.value, item.index, request.headers, item.envelope) for item in found]

    @abstractmethod
    def read(self, item: Item) -> Inbound | Sequence[Inbound]:
        """What happened, to which record. Several when one item is about several records. Raises Unreadable (or KeyError)."""

    def handshake(self, request: IngressRequest) -> Answer | None:  # noqa: ARG002  # a default
        """Answer to a provider's challenge, asked before the signature is checked; None = this is an ordinary delivery."""
        return None

    def acknowledge(self, outcome: Outcome) -> Answer | None:  # noqa: ARG002  # a default
        """The provider's own form of answer; None = Headrace's JSON. A 2xx for a delivery that was not stored is not sent."""
        return None

    def sample(self, number: int) -> Sample | None:  # noqa: ARG002  # a default
        """A delivery as the provider might send it, for a test by hand; None = nobody knows one. Its ids are made from `number`.

        `number` is new each time: a delivery with the ids of an earlier one would be its duplicate. Default: the fixture's first.
        """
        return of_fixture(type(self))

    def default_source_type(self, kind: str) -> str | None:  # noqa: ARG002  # a default
        """The type that a record gets from the kind alone; None: the pack does not take it from there. Publishing a route warns by it."""
        return None

    def is_same_fact(self, first: Any, again: Any) -> bool:
        """Whether two payloads of one delivery id say the same though their texts differ (a retry counter). Default: they do not."""
        return bool(first == again)

    def change(self, kind: str, payload: Any) -> Change:  # noqa: ARG002  # a default
        """How a payload of provider kind `kind` changes its record. Default: every top-level member of an object is a property."""
        return Change(properties=payload if isinstance(payload, Mapping) else {"value": payload})


_registry: dict[str, type[Pack]] = {}


def register(cls: type[Pack]) -> type[Pack]:
    """Make a pack known under its `name`; subclasses with a name do so by themselves. Raises DuplicatePack."""
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


def forget(name: str) -> type[Pack] | None:
    """Take a pack out again (tests, reloading)."""
    return _registry.pop(name, None)


__all__ = [
    "NO_RECORD",
    "Accounts",
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
    "Sample",
    "SignatureScheme",
    "Unreadable",
    "Verdict",
    "find",
    "forget",
    "hmac_sha256",
    "json_items",
    "register",
    "registered",
    "token",
    "unsigned",
]
