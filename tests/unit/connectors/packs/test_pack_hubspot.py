"""HubSpot: which record an event is about, what identifies it, how it changes the record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from connectors.delivery import Headers, Inbound, IngressRequest
from connectors.pack import NotJson, Unreadable
from connectors.packs.hubspot import HubSpot

PACK = HubSpot()
EVENT = {
    "portalId": 7,
    "subscriptionId": 11,
    "subscriptionType": "contact.propertyChange",
    "objectId": 508369434347,
    "eventId": 100,
    "occurredAt": 1700000000123,
    "propertyName": "email",
    "propertyValue": "a@example.com",
    "attemptNumber": 0,
}


def read_all(*events: Any) -> list[Inbound]:
    found: list[Inbound] = []
    for item in PACK.split(json.dumps(list(events)).encode()):
        one = PACK.read(item)
        found += one if isinstance(one, Sequence) else [one]
    return found


def read_one(**changes: Any) -> Inbound:
    (found,) = read_all({name: value for name, value in (EVENT | changes).items() if value is not None})
    return found


def test_a_property_change() -> None:
    assert read_one() == Inbound(
        kind="contact.propertyChange",
        source=("contact", "508369434347"),
        lane=("7", "contact", "508369434347"),
        delivery_id="7:11:contact.propertyChange:508369434347:100:1700000000123:email",
        time=datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        account="7",
    )


def test_the_attempt_is_not_identity_but_everything_else_is() -> None:
    first = read_one().delivery_id
    assert read_one(attemptNumber=5).delivery_id == first
    other = [
        read_one(**{name: value}).delivery_id
        for name, value in (
            ("portalId", 8),
            ("subscriptionId", 12),
            ("subscriptionType", "contact.creation"),
            ("objectId", 1),
            ("eventId", 101),
            ("occurredAt", 1700000000124),
            ("propertyName", "phone"),
        )
    ]
    assert len({first, *other}) == 8


def test_a_separator_inside_a_value_cannot_make_two_events_one() -> None:
    assert read_one(eventId="1:2", occurredAt="3").delivery_id != read_one(eventId="1", occurredAt="2:3").delivery_id


def test_ids_keep_every_digit() -> None:
    one, two = read_all(EVENT | {"objectId": 7615917337495251231}, EVENT | {"objectId": 7615917337495251232})
    assert (one.source[1], two.source[1]) == ("7615917337495251231", "7615917337495251232")
    assert one.lane != two.lane


def test_the_old_name_of_the_kind_is_accepted() -> None:
    old = read_one(subscriptionType=None, eventType="contact.propertyChange")
    assert old == read_one()


@pytest.mark.parametrize(
    ("type_id", "name"), [("0-1", "contact"), ("0-2", "company"), ("0-3", "deal"), ("0-5", "ticket"), ("2-345", "2-345")]
)
def test_a_generic_kind_takes_its_type_from_the_object_type_id(type_id: str, name: str) -> None:
    found = read_one(subscriptionType="object.propertyChange", objectTypeId=type_id)
    assert found.kind == "object.propertyChange"
    assert found.source[0] == name
    assert found.lane == ("7", name, "508369434347")


def test_a_merge_is_news_of_every_record_in_it() -> None:
    merge = {"subscriptionType": "company.merge", "primaryObjectId": 1, "mergedObjectIds": [2, 3], "newObjectId": 4}
    found = read_all(EVENT | merge | {"objectId": 4})
    assert [one.source for one in found] == [("company", id_) for id_ in ("2", "3", "1", "4")]
    assert len({one.delivery_id for one in found}) == 4
    change = PACK.change("company.merge", merge)
    assert (change.lifecycle, change.merged_into) == ("merged", "4")


def test_a_merge_into_the_primary_record() -> None:
    found = read_all(EVENT | {"subscriptionType": "contact.merge", "primaryObjectId": 1, "mergedObjectIds": [2]})
    assert [one.source[1] for one in found] == ["2", "1"]


def test_an_association_belongs_to_the_record_it_starts_from() -> None:
    association = {
        "subscriptionType": "contact.associationChange",
        "objectId": None,
        "fromObjectId": 5,
        "toObjectId": 6,
        "associationType": "CONTACT_TO_COMPANY",
    }
    made, undone = read_one(**association, associationRemoved=False), read_one(**association, associationRemoved=True)
    assert made.source == ("contact", "5")
    assert made.delivery_id != undone.delivery_id
    assert PACK.change(made.kind, association).lifecycle == ""


def test_messages_of_one_conversation_are_different_events() -> None:
    ids = {read_one(subscriptionType="conversation.newMessage", messageId=one).delivery_id for one in ("m1", "m2")}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("kind", "lifecycle"),
    [
        ("deal.creation", "created"),
        ("deal.deletion", "deleted"),
        ("contact.privacyDeletion", "deleted"),
        ("deal.restore", "restored"),
    ],
)
def test_lifecycle_kinds(kind: str, lifecycle: str) -> None:
    change = PACK.change(kind, EVENT)
    assert (change.lifecycle, dict(change.properties)) == (lifecycle, {})


def test_a_property_change_sets_that_property_to_the_exact_value() -> None:
    assert dict(PACK.change("contact.propertyChange", EVENT).properties) == {"email": "a@example.com"}
    assert dict(PACK.change("contact.propertyChange", {"propertyName": "email"}).properties) == {"email": None}


def test_a_workflow_object_is_one_item_with_its_properties() -> None:
    body = b'{"portalId": 7, "objectType": "DEAL", "objectId": 9, "properties": {"amount": {"value": "10.10"}}, "isDeleted": false}'
    (item,) = PACK.split(body)
    found = PACK.read(item)
    assert isinstance(found, Inbound)
    assert (found.kind, found.lane, found.delivery_id) == ("workflow.deal", ("7", "deal", "9"), None)
    assert item.text.encode() == body
    assert dict(PACK.change(found.kind, item.value).properties) == {"amount": "10.10"}


def test_one_unreadable_item_leaves_the_others() -> None:
    items = PACK.split(json.dumps([EVENT, {"subscriptionType": "contact.creation", "portalId": 7}, 5]).encode())
    assert isinstance(PACK.read(items[0]), Inbound)
    with pytest.raises(Unreadable, match="objectId"):
        PACK.read(items[1])
    with pytest.raises(Unreadable, match="not a JSON object"):
        PACK.read(items[2])


@pytest.mark.parametrize("body", [b"", b"NaN", b"[1,", b"\xff"])
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(NotJson):
        PACK.split(body)


def test_a_batch_has_no_delivery_id_of_its_own() -> None:
    assert PACK.delivery_id(IngressRequest("POST", "https://x", Headers({"x-hubspot-correlation-id": "c"}), b"[]")) is None
