"""Standard Webhooks and Svix: one event a request, `{type, timestamp, data}`, `webhook-id` as its identity.

Settings (all optional): `kind`, `source_type`, `source_id`, `lane`, `time` are JMESPath expressions over the body (and `headers`);
`tolerance` is seconds. Source: standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from connectors.expressions import Expression
from connectors.identity_texts import identity_text, inside, members, provider_time
from connectors.pack import Change, Inbound, IngressRequest, Item, Pack, SignatureScheme, Unreadable, json_items
from connectors.signatures import TOLERANCE_SECONDS, standard_webhooks

DEFAULTS: Final = {"kind": "type || eventType", "source_id": "data.id", "time": "timestamp"}
EXPRESSIONS: Final = ("kind", "source_type", "source_id", "lane", "time")
LIFECYCLE: Final = {"created": "created", "deleted": "deleted", "restored": "restored"}


class StandardWebhooks(Pack):
    """By default the record is `data.id`, its type what stands before the first dot of the kind, and its lane both together."""

    name = "standard_webhooks"
    version = "1"
    signature = standard_webhooks()
    kept_headers = ("webhook-id", "webhook-timestamp", "svix-id", "svix-timestamp")

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(settings)
        unknown = set(self.settings) - {*EXPRESSIONS, "tolerance"}
        if unknown:
            raise ValueError(
                f"standard_webhooks has no setting {sorted(unknown)[0]!r}; it has {', '.join(EXPRESSIONS)} and tolerance"
            )
        chosen = DEFAULTS | {name: self.settings[name] for name in EXPRESSIONS if name in self.settings}
        self._expressions = {name: Expression.of(name, text) for name, text in chosen.items()}
        self._scheme = standard_webhooks(tolerance=self.settings.get("tolerance", TOLERANCE_SECONDS))

    def scheme(self) -> SignatureScheme:
        return self._scheme

    def stored_headers(self) -> tuple[str, ...]:
        named = set().union(*(expression.header_names() for expression in self._expressions.values()))
        return (*super().stored_headers(), *sorted(named - set(self.kept_headers)))

    def delivery_id(self, request: IngressRequest) -> str | None:
        return _message_id(request.headers)

    def split(self, body: bytes) -> Sequence[Item]:
        items = json_items(body)
        if isinstance(items[0].value if items else [], list) or len(items) != 1:
            raise Unreadable("a Standard Webhooks body is one JSON object")
        return items

    def read(self, item: Item) -> Inbound:
        members(item)
        kind = self._text("kind", item)
        if kind is None:
            raise Unreadable(f"the body names no kind at {self._expressions['kind'].text}; set the pack's setting `kind`")
        message_id = _message_id(item.headers)
        record_id = self._text("source_id", item)
        record_type = self._text("source_type", item) or kind.partition(".")[0]
        source_id = record_id or message_id
        if source_id is None:
            raise Unreadable(f"the body names no record at {self._expressions['source_id'].text}, and there is no webhook-id")
        lane = self._text("lane", item) or (f"{record_type}:{record_id}" if record_id else None)
        return Inbound(kind, (record_type, source_id), lane, message_id, provider_time(self._find("time", item)))

    def change(self, kind: str, payload: Any) -> Change:
        data = inside(payload, "data")
        properties = data if isinstance(data, Mapping) else {"data": data}
        return Change(properties=properties, lifecycle=LIFECYCLE.get(kind.rpartition(".")[2], ""))

    def _find(self, name: str, item: Item) -> Any:
        expression = self._expressions.get(name)
        return expression.find(item.value, item.headers) if expression else None

    def _text(self, name: str, item: Item) -> str | None:
        return identity_text(self._find(name, item))


def _message_id(headers: Mapping[str, str]) -> str | None:
    return headers.get("webhook-id") or headers.get("svix-id")
