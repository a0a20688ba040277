"""Standard Webhooks and Svix: one event a request, `{type, timestamp, data}`, `webhook-id` as its identity.

Settings (all optional): `kind`, `source_type`, `source_id`, `lane`, `account`, `time` are JMESPath expressions over the body (and
`headers`); `tolerance` is seconds. Source: standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
No transaction, no database. Begin reading at `StandardWebhooks.split` and `StandardWebhooks.read`. May import what `connectors.packs` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from connectors.expressions import Expressions
from connectors.identity_texts import action_of_kind, inside, members, provider_time, type_of_kind
from connectors.pack import Change, Inbound, IngressRequest, Item, Pack, Sample, SignatureScheme, Unreadable, json_items
from connectors.signatures import TOLERANCE_SECONDS, standard_webhooks

DEFAULTS: Final = {"kind": "type || eventType", "source_id": "data.id", "time": "timestamp"}
EXPRESSIONS: Final = ("kind", "source_type", "source_id", "lane", "account", "time")
LIFECYCLE: Final = {"created": "created", "deleted": "deleted", "restored": "restored"}


class StandardWebhooks(Pack):
    """By default the record is `data.id`, its type what stands before the first `.`, `/` or `:` of the kind, and its lane both together."""

    name = "standard_webhooks"
    version = "1"
    signature = standard_webhooks()
    kept_headers = ("webhook-id", "webhook-timestamp", "svix-id", "svix-timestamp")

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(settings)
        self.refuse_unknown_settings((*EXPRESSIONS, "tolerance"))
        self._expressions = Expressions.of(self.settings, EXPRESSIONS, DEFAULTS)
        self._scheme = standard_webhooks(tolerance=self.settings.get("tolerance", TOLERANCE_SECONDS))

    def scheme(self) -> SignatureScheme:
        return self._scheme

    def stored_headers(self) -> tuple[str, ...]:
        return (*super().stored_headers(), *sorted(self._expressions.header_names() - set(self.kept_headers)))

    def delivery_id(self, request: IngressRequest) -> str | None:
        return _message_id(request.headers)

    def sample(self, number: int) -> Sample | None:
        known = super().sample(number)
        return known and Sample({"content-type": "application/json", "webhook-id": f"msg_test_{number}"}, known.body)

    def split(self, body: bytes) -> Sequence[Item]:
        items = json_items(body)
        if isinstance(items[0].value if items else [], list) or len(items) != 1:
            raise Unreadable("the body must be one JSON object")
        return items

    def read(self, item: Item) -> Inbound:
        members(item)
        kind = self._expressions.text("kind", item)
        if kind is None:
            raise Unreadable(f"the body has no kind at {self._expressions['kind'].text}; set the pack's setting `kind`")
        message_id = _message_id(item.headers)
        record_id = self._expressions.text("source_id", item)
        record_type = self._expressions.text("source_type", item) or type_of_kind(kind)
        source_id = record_id or message_id
        if source_id is None:
            raise Unreadable(f"the body has no record id at {self._expressions['source_id'].text}, and there is no webhook-id")
        lane = self._expressions.text("lane", item) or (record_id and (record_type, record_id))
        time = provider_time(self._expressions.find("time", item))
        return Inbound(kind, (record_type, source_id), lane, message_id, time, self._expressions.text("account", item))

    def default_source_type(self, kind: str) -> str | None:
        return None if "source_type" in self._expressions else type_of_kind(kind)

    def change(self, kind: str, payload: Any) -> Change:
        data = inside(payload, "data")
        properties = data if isinstance(data, Mapping) else {"data": data}
        return Change(properties=properties, lifecycle=LIFECYCLE.get(action_of_kind(kind), ""))


def _message_id(headers: Mapping[str, str]) -> str | None:
    return headers.get("webhook-id") or headers.get("svix-id")
