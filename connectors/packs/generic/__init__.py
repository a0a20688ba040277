"""Any sender of JSON, described by settings: how it signs, and where in its bodies ids, kinds, lanes and times are.

signature = { kind = "hmac", header = "X-Signature", encoding = "hex", prefix = "sha256=" }   # or kind = "token", kind = "none"
items = "events"                    # plain path of an array of events; without it the body is one event
delivery_id = "id"                  # JMESPath, like all below; also over headers."x-name" and, for items, body.member
kind = "type"
source_type = "'order'"
source_id = "order.id"
lane = "join(':', ['order', to_string(order.id)])"
account = "shop.id"                 # whose records these are; without it, or where it finds nothing, the endpoint's account
time = "created_at"

No transaction, no database. Begin reading at `Generic.split` and `Generic.read`. May import what `connectors.packs` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from connectors.expressions import BODY, HEADERS, Expression, Expressions
from connectors.identity_texts import identity_text, provider_time, type_of_kind
from connectors.pack import (
    NO_RECORD,
    Inbound,
    IngressRequest,
    Item,
    Pack,
    Sample,
    SignatureScheme,
    Unreadable,
    hmac_sha256,
    json_items,
    token,
    unsigned,
)
from connectors.sample_delivery import put
from projection import exact_json

DEFAULT_SIGNATURE: Final = {"kind": "hmac", "header": "X-Signature"}
DEFAULTS: Final = {"kind": "type || 'event'", "source_id": "id"}
EXPRESSIONS: Final = ("delivery_id", "kind", "source_type", "source_id", "lane", "account", "time")
SIGNATURE_MEMBERS: Final = {
    "hmac": {"header", "encoding", "prefix"},
    "token": {"header", "prefix"},
    "none": set[str](),
}


class Generic(Pack):
    """By default the record is `id`, its type what stands before the first `.`, `/` or `:` of the kind, and its lane both together.

    An id that is null, or blank, is news of no record: the event is kept, in no lane. Without the member the item is unreadable, because
    then `source_id` is wrong.
    """

    name = "generic"
    version = "1"
    signature = hmac_sha256(header=DEFAULT_SIGNATURE["header"])

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(settings)
        self.refuse_unknown_settings(("signature", "items", *EXPRESSIONS))
        self._scheme = _scheme(self.settings.get("signature", DEFAULT_SIGNATURE))
        self._path = Expression.of("items", self.settings["items"]).path() if "items" in self.settings else None
        self._expressions = Expressions.of(self.settings, EXPRESSIONS, DEFAULTS)
        self._check_item_identity()
        self._check_no_credential()

    def _check_item_identity(self) -> None:
        identity = self._expressions.get("delivery_id")
        if self._path is not None and identity is not None and identity.roots() <= {HEADERS, BODY}:
            raise ValueError(
                "delivery_id must be a field of the item; a header or body field would give all items of a request the same id"
            )

    def _check_no_credential(self) -> None:
        secret = set(self._scheme.headers) if self._scheme.name == "token" else set()
        for expression in self._expressions:
            if expression.header_names() & {name.lower() for name in secret}:
                raise ValueError(f"{expression.setting} reads the header with the token, which is never stored; use another header")

    def scheme(self) -> SignatureScheme:
        return self._scheme

    def stored_headers(self) -> tuple[str, ...]:
        return (*super().stored_headers(), *sorted(self._expressions.header_names() - {"content-type", "user-agent"}))

    def delivery_id(self, request: IngressRequest) -> str | None:
        """The one event's id; a request with items has none of its own. Raises NotJson or Unreadable like `read`."""
        expression = self._expressions.get("delivery_id")
        if expression is None or self._path is not None:
            return None
        body = None if expression.roots() <= {HEADERS} else exact_json.parse_unless_deep(exact_json.decode(request.body))
        return identity_text(expression.find(body, request.headers))

    def sample(self, number: int) -> Sample | None:
        """Made from the settings: a value at each plain path that they name. Functions over several members are not guessed."""
        values = {
            "kind": "test.delivery",
            "source_type": "test",
            "source_id": "test",
            "delivery_id": f"test-{number}",
            "time": datetime.now(UTC).isoformat(),
        }
        headers: dict[str, str] = {"content-type": "application/json"}
        item: dict[str, Any] = {"id": "test", "type": "test.delivery"}
        body: dict[str, Any] = item if not self._path else {}
        for name, value in values.items():
            self._place(name, value, headers, item, body)
        if self._path:
            put(body, self._path, [item])
        return Sample(headers, body if self._path != () else [item])

    def _place(self, name: str, value: str, headers: dict[str, str], item: dict[str, Any], body: dict[str, Any]) -> None:
        """`value` where the expression of the setting would find it; nowhere, where that is more than a plain path."""
        try:
            path = self._expressions[name].path() if name in self._expressions else ()
        except ValueError:
            return
        if path[:1] == (HEADERS,):
            headers.update({str(path[-1]): value})
        elif path[:1] == (BODY,):
            put(body, path[1:], value)
        else:
            put(item, path, value)

    def split(self, body: bytes) -> Sequence[Item]:
        if self._path is None:
            text = exact_json.decode(body)
            return [Item(text.strip(" \t\r\n"), exact_json.parse_unless_deep(text))]
        envelope = exact_json.parse_unless_deep(exact_json.decode(body)) if self._needs_body() else None
        return [Item(item.text, item.value, item.index, envelope=envelope) for item in self._items(body, self._path)]

    def _items(self, body: bytes, path: tuple[str | int, ...]) -> Sequence[Item]:
        if path:
            return json_items(body, *path)
        if not exact_json.decode(body).lstrip(" \t\r\n").startswith("["):
            raise Unreadable("the body is not an array of items")
        return json_items(body)

    def _needs_body(self) -> bool:
        return any(BODY in expression.roots() for expression in self._expressions)

    def read(self, item: Item) -> Inbound:
        kind = self._expressions.text("kind", item)
        if kind is None:
            raise Unreadable(f"the item has no kind at {self._expressions['kind'].text}; correct the pack's setting kind")
        record_id = self._expressions.text("source_id", item)
        if record_id is None and not self._expressions["source_id"].is_there(item.value, item.headers, item.envelope):
            raise Unreadable(
                f"the item has no record id at {self._expressions['source_id'].text}; correct the pack's setting source_id"
            )
        source_type = self._expressions.text("source_type", item) or type_of_kind(kind)
        lane = self._expressions.text("lane", item) if "lane" in self._expressions else record_id and (source_type, record_id)
        return Inbound(
            kind,
            (source_type, record_id or NO_RECORD),
            lane,
            self._expressions.text("delivery_id", item),
            provider_time(self._expressions.find("time", item)),
            self._expressions.text("account", item),
        )

    def default_source_type(self, kind: str) -> str | None:
        return None if "source_type" in self._expressions else type_of_kind(kind)


def _scheme(settings: Any) -> SignatureScheme:
    """The scheme that `signature` describes. Raises ValueError naming the member that is wrong."""
    if not isinstance(settings, Mapping):
        raise ValueError('signature must be a table, such as { kind = "hmac", header = "X-Signature" }')  # noqa: TRY004  # the contract is ValueError
    kind = settings.get("kind")
    if not isinstance(kind, str) or kind not in SIGNATURE_MEMBERS:
        raise ValueError(f"signature.kind must be hmac, token or none, not {kind!r}")
    members = {name: value for name, value in settings.items() if name != "kind"}
    for name, value in members.items():
        if name not in SIGNATURE_MEMBERS[kind]:
            raise ValueError(f"signature.{name} cannot be used with kind {kind!r}")
        if not isinstance(value, str):
            raise ValueError(f"signature.{name} must be text")  # noqa: TRY004  # the contract is ValueError
    if kind == "none":
        return unsigned()
    if "header" not in members:
        raise ValueError("signature.header is missing; give the name of the header with the signature or token")
    try:
        return hmac_sha256(**members) if kind == "hmac" else token(**members)
    except ValueError as error:
        raise ValueError(f"signature.{error}") from None
