"""HubSpot deliveries written by hand in the documented shapes, and what a record must be after them, folded from the raw JSON.

Nothing here asks the code under test: the fold states the documented rules a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PORTAL, OTHER_PORTAL = 8800123, 8800124
LIFECYCLES = {"creation": False, "restore": False, "deletion": True, "privacyDeletion": True}
"""What a kind says of the record's existence: is it deleted afterwards?"""


@dataclass
class ExpectedRecord:
    """A live record as it must be."""

    properties: dict[str, Any] = field(default_factory=dict)
    deleted: bool = False
    merged_into: str | None = None
    event_count: int = 0


Key = tuple[str, str, str]
Records = dict[Key, ExpectedRecord]
"""By (account, object type, object id): accounts give the same ids to objects of their own."""


def fold(events: Iterable[Mapping[str, Any]]) -> Records:
    """The records after distinct events in the order of their admission."""
    records: Records = {}
    for event in events:
        for key, touched in _touched(event):
            record = records.setdefault(key, ExpectedRecord())
            record.event_count += 1
            touched(record)
    return records


def _touched(event: Mapping[str, Any]) -> Iterator[tuple[Key, Any]]:
    kind = event.get("subscriptionType") or event.get("eventType")
    if kind is None:
        yield _workflow_key(event), lambda record: _workflow(record, event)
        return
    object_type, _, what = str(kind).rpartition(".")
    account = str(event["portalId"])
    if what == "merge":
        survivor = str(event["newObjectId"])
        for object_id in {*map(str, event["mergedObjectIds"]), str(event["primaryObjectId"]), survivor}:
            yield (
                (account, object_type, object_id),
                lambda record, away=object_id != survivor: _merge(record, survivor if away else None),
            )
    else:
        yield (account, object_type, str(event["objectId"])), lambda record: _change(record, what, event)


def _workflow_key(event: Mapping[str, Any]) -> Key:
    if "vid" in event:
        return str(event["portal-id"]), "contact", str(event["vid"])
    return str(event["portalId"]), str(event["objectType"]).lower(), str(event["objectId"])


def _workflow(record: ExpectedRecord, event: Mapping[str, Any]) -> None:
    record.properties.update({name: entry["value"] for name, entry in event["properties"].items()})
    record.deleted = record.deleted or event.get("isDeleted") is True


def _merge(record: ExpectedRecord, into: str | None) -> None:
    if into is not None:
        record.merged_into, record.deleted = into, False


def _change(record: ExpectedRecord, what: str, event: Mapping[str, Any]) -> None:
    if what == "propertyChange":
        record.properties[event["propertyName"]] = event["propertyValue"]
    elif what in LIFECYCLES:
        record.deleted, record.merged_into = LIFECYCLES[what], None


def event(number: int, kind: str, object_id: int | None, **members: Any) -> dict[str, Any]:
    """One event of the webhooks API."""
    made = {
        "eventId": number,
        "subscriptionId": 7000 + len(kind),
        "portalId": PORTAL,
        "appId": 4471,
        "occurredAt": 1_764_400_000_000 + number,
        "subscriptionType": kind,
        "attemptNumber": 0,
        "objectId": object_id,
        "changeSource": "CRM_UI",
    }
    return made | members


def changed(number: int, object_type: str, object_id: int, name: str, value: str) -> dict[str, Any]:
    return event(number, f"{object_type}.propertyChange", object_id, propertyName=name, propertyValue=value)


def body(*events: Mapping[str, Any]) -> bytes:
    return json.dumps(events, ensure_ascii=False).encode()


FIRST, SECOND, THIRD = 90071992547409931, 90071992547409932, 90071992547409933
"""Object ids above 2^53: a float would make one of them out of three."""

MERGE = {
    **event(31, "contact.merge", None),
    "primaryObjectId": FIRST,
    "mergedObjectIds": [SECOND],
    "newObjectId": THIRD,
    "numberOfPropertiesMoved": 2,
}
WORKFLOW_CONTACT = {
    "vid": 77012,
    "portal-id": PORTAL,
    "is-contact": True,
    "properties": {
        "email": {"value": "ada@example.com", "versions": []},
        "lastmodifieddate": {"value": "1764400000123", "versions": []},
    },
}
WORKFLOW_DEAL = {
    "portalId": PORTAL,
    "objectType": "DEAL",
    "objectTypeId": "0-3",
    "objectId": 62000772,
    "properties": {"dealname": {"value": "Lamp oil", "timestamp": 1764400000456}},
    "isDeleted": False,
}

DELIVERIES: list[tuple[dict[str, str], bytes]] = [
    ({}, body(event(1, "contact.creation", FIRST), changed(2, "contact", FIRST, "firstname", "Ada"))),
    ({}, body(event(3, "contact.creation", SECOND), changed(4, "contact", SECOND, "firstname", "Grace"))),
    # The same event again, beside news, and a change that is older by its provider's clock than what stands already.
    ({}, body(changed(2, "contact", FIRST, "firstname", "Ada"), changed(5, "contact", FIRST, "lastname", "Löwe — 🦁"))),
    ({}, body(changed(0, "contact", FIRST, "firstname", "Augusta"))),
    # Another account has an object of the same id.
    ({}, body(changed(6, "contact", FIRST, "firstname", "Hedy") | {"portalId": OTHER_PORTAL})),
    ({}, body(event(7, "contact.deletion", SECOND), event(8, "contact.restore", SECOND))),
    ({}, body(event(9, "company.creation", 51000402), event(10, "company.privacyDeletion", 51000402))),
    ({}, body({**changed(11, "deal", 62000772, "amount", "1200.10"), "changeFlag": None})),
    # Old documentation calls the member eventType; eventId alone is not unique.
    ({}, body({**changed(11, "ticket", 73000119, "content", ""), "subscriptionType": None, "eventType": "ticket.propertyChange"})),
    ({}, body(MERGE)),
    ({"x-hubspot-correlation-id": "0d0c1e62-0000-4000-8000-000000000001"}, json.dumps(WORKFLOW_CONTACT).encode()),
    ({"x-hubspot-correlation-id": "0d0c1e62-0000-4000-8000-000000000002"}, json.dumps(WORKFLOW_DEAL).encode()),
    # A kind that no route takes is kept all the same.
    ({}, body(event(12, "conversation.newMessage", 840001, messageId="a1b2"))),
]
