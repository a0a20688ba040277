"""HubSpot: webhooks of an app (arrays of events) and the "send a webhook" action of workflows (one CRM object).

Sources: developers.hubspot.com, webhooks API guide and "Validating requests"; workflow webhooks reference.
No transaction, no database. Begin reading at `HubSpot.split` and `HubSpot.read`. May import what `connectors.packs` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from connectors.identity_texts import identity_text, inside, members, provider_time, required
from connectors.pack import Change, Inbound, Item, Pack, Sample, Unreadable, json_items
from connectors.signatures import hubspot, hubspot_v3

OBJECT_TYPES: Final = {"0-1": "contact", "0-2": "company", "0-3": "deal", "0-5": "ticket"}
"""Names of the standard objects; an object of another `objectTypeId` is its own type."""

IDENTITY: Final = ("portalId", "subscriptionId", "subscriptionType", "objectId", "eventId", "occurredAt", "propertyName")
"""What makes one event: eventId alone is documented as not unique, and attemptNumber grows with each retry."""

EXTRA_IDENTITY: Final = (
    "fromObjectId",
    "toObjectId",
    "associationType",
    "associationTypeId",
    "associationRemoved",
    "messageId",
    "primaryObjectId",
    "newObjectId",
)
"""Members that tell apart association, conversation and merge events that agree in everything above."""

LIFECYCLE: Final = {"creation": "created", "deletion": "deleted", "privacyDeletion": "deleted", "restore": "restored"}


class HubSpot(Pack):
    """One app posts the events of all its accounts to one URL: each delivery says whose it is (`portalId`).

    A batch has no id, and a retried batch may be composed differently, so identity is per event.
    """

    name = "hubspot"
    version = "1"
    accounts = "delivery"
    signature = hubspot_v3()
    other_signatures = (hubspot(),)
    kept_headers = ("x-hubspot-correlation-id", "x-hubspot-request-timestamp", "x-hubspot-signature-version")

    def split(self, body: bytes) -> Sequence[Item]:
        return json_items(body)

    def read(self, item: Item) -> Inbound | Sequence[Inbound]:
        event = members(item)
        kind = _kind(event)
        if kind is None:
            return _read_workflow_object(event, item.headers.get("x-hubspot-correlation-id"))
        if _suffix(kind) == "merge":
            return list(_read_merge(event, kind))
        name = "fromObjectId" if _suffix(kind) == "associationChange" else "objectId"
        return _inbound(event, kind, required(event, name), _delivery_id(event, kind))

    def sample(self, number: int) -> Sample | None:
        known = super().sample(number)
        if known is None or not isinstance(known.body, list):
            return known
        return Sample(known.headers, [{**event, "eventId": number + place} for place, event in enumerate(known.body)])

    def is_same_fact(self, first: Any, again: Any) -> bool:
        """A retry of HubSpot's differs from the first attempt in its counter only."""
        return bool(_without_counter(first) == _without_counter(again))

    def change(self, kind: str, payload: Any) -> Change:
        if kind.startswith("workflow."):
            return _workflow_change(payload)
        suffix = _suffix(kind)
        if suffix == "propertyChange":
            return Change(properties={payload["propertyName"]: payload.get("propertyValue")})
        if suffix == "merge":
            # Each of the records gets this; the one that a record is said to be merged into is itself the one that remains.
            return Change(lifecycle="merged", merged_into=_survivor(payload))
        return Change(lifecycle=LIFECYCLE.get(suffix, ""))


def _kind(event: Mapping[str, Any]) -> str | None:
    """`contact.propertyChange`; older documentation calls the member eventType. None: not an event of the webhooks API."""
    return identity_text(event.get("subscriptionType")) or identity_text(event.get("eventType"))


def _suffix(kind: str) -> str:
    return kind.rpartition(".")[2]


def _object_type(event: Mapping[str, Any], kind: str) -> str:
    """Type of the record: the kind's prefix, for the generic `object.*` kinds what objectTypeId says."""
    prefix = kind.partition(".")[0]
    if prefix != "object":
        return prefix
    type_id = required(event, "objectTypeId", "fromObjectTypeId")
    return OBJECT_TYPES.get(type_id, type_id)


def _inbound(event: Mapping[str, Any], kind: str, object_id: str, delivery_id: str) -> Inbound:
    object_type = _object_type(event, kind)
    portal = required(event, "portalId")
    lane = (portal, object_type, object_id)
    return Inbound(kind, (object_type, object_id), lane, delivery_id, provider_time(event.get("occurredAt")), portal)


def _delivery_id(event: Mapping[str, Any], kind: str) -> str:
    values = {**event, "subscriptionType": kind}
    parts = [_escaped(identity_text(values.get(name)) or "") for name in IDENTITY]
    parts += [f"{name}={_escaped(text)}" for name in EXTRA_IDENTITY if (text := _part(event.get(name))) is not None]
    return ":".join(parts)


def _part(value: Any) -> str | None:
    """What tells events apart may be true or false (an association removed), which no id may be."""
    return str(value).lower() if isinstance(value, bool) else identity_text(value)


def _without_counter(event: Any) -> Any:
    return {name: value for name, value in event.items() if name != "attemptNumber"} if isinstance(event, Mapping) else event


def _escaped(text: str) -> str:
    """So that the separator inside a value cannot make two events look the same."""
    return text.replace("%", "%25").replace(":", "%3A")


def _merged_ids(event: Mapping[str, Any]) -> list[str]:
    merged = event.get("mergedObjectIds")
    return [text for one in (merged if isinstance(merged, list) else []) if (text := identity_text(one)) is not None]


def _survivor(event: Mapping[str, Any]) -> str:
    return required(event, "newObjectId", "primaryObjectId", "objectId")


def _read_merge(event: Mapping[str, Any], kind: str) -> Iterator[Inbound]:
    """One merge is news of every record in it: those merged away, and the one that remains."""
    ids = [*_merged_ids(event), identity_text(event.get("primaryObjectId")), _survivor(event)]
    delivery_id = _delivery_id(event, kind)
    for object_id in dict.fromkeys(one for one in ids if one is not None):
        yield _inbound(event, kind, object_id, f"{delivery_id}:{_escaped(object_id)}")


def _read_workflow_object(record: Mapping[str, Any], correlation: str | None) -> Inbound:
    """A workflow action posts the whole object, with no event id or time: its repetition is known by the request's correlation id.

    HubSpot does not say what that id is unique for, so it counts together with the object and its last change. Without one each
    delivery is a fact of its own.
    """
    object_type = (identity_text(record.get("objectType")) or ("contact" if "vid" in record else "")).lower()
    if not object_type:
        raise Unreadable("subscriptionType is missing, and the body is not a workflow object (no objectType or vid)")
    object_id = required(record, "objectId", "vid")
    portal = required(record, "portalId", "portal-id")
    properties = record.get("properties")
    changed = inside(properties, "hs_lastmodifieddate", "value") or inside(properties, "lastmodifieddate", "value")
    identity = ("workflow", portal, object_type, object_id, str(changed or ""), correlation or "")
    return Inbound(
        kind=f"workflow.{object_type}",
        source=(object_type, object_id),
        lane=(portal, object_type, object_id),
        account=portal,
        delivery_id=":".join(map(_escaped, identity)) if correlation and correlation.strip() else None,
        time=provider_time(changed),
    )


def _workflow_change(payload: Mapping[str, Any]) -> Change:
    properties = payload.get("properties")
    found = properties.items() if isinstance(properties, Mapping) else ()
    values = {name: inside(entry, "value") for name, entry in found}
    return Change(properties=values, lifecycle="deleted" if payload.get("isDeleted") is True else "")
