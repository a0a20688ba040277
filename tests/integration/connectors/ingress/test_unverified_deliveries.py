"""Deliveries that do not verify are kept apart, bounded in number and time, and admitted once the secret is right."""

from __future__ import annotations

from datetime import timedelta

import pytest

from connectors import models, secrets
from connectors.configuration import endpoints, stored_secrets
from connectors.ingress import unverified
from connectors.models import AuditEntry, Receipt, UnverifiedDelivery
from connectors.operations.reverify import reverify
from projection.database import clock
from tests.support import factories, signing
from tests.support.ingress import Ingress, answer, facts, open_endpoint

pytestmark = pytest.mark.usefixtures("database")

BODY = b'{"zen":"Keep it logically awesome."}'


def set_secret(ingress: Ingress, secret: str) -> None:
    text = secrets.encrypt([{"secret": secret, "expires_at": None}])
    models.Endpoint.objects.filter(id=ingress.endpoint.id).update(secrets=text)


def test_after_a_botched_rotation_nothing_is_lost() -> None:
    ingress = open_endpoint("github", secret="the-wrong-one")
    for number in range(3):
        headers = signing.github(BODY, "the-right-one", delivery=f"guid-{number}")
        assert ingress.post(BODY, headers).status_code == 401
    assert ingress.post(BODY, signing.github(BODY, "a-strangers", delivery="guid-9")).status_code == 401
    assert Receipt.objects.count() == 0

    set_secret(ingress, "the-right-one")
    done = reverify(facts(ingress), actor="ops", reason="rotation fixed")
    assert [one.code for one in done.admitted] == ["accepted"] * 3
    assert len(done.refused) == 1
    assert {bytes(row.body) for row in Receipt.objects.all()} == {BODY}
    assert sorted(Receipt.objects.values_list("idempotency_key", flat=True)) == ["guid-0", "guid-1", "guid-2"]
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.count) == ("ops", "endpoint.reverify", 3)

    assert reverify(facts(ingress), actor="ops").admitted == ()
    assert Receipt.objects.count() == 3


def test_a_signed_time_is_judged_as_of_the_arrival() -> None:
    ingress = open_endpoint("standard_webhooks", secret="whsec_d3JvbmctYW5kLW9sZA==")
    sent = clock.now().timestamp() - 1800
    ingress.post(BODY, signing.standard_webhooks(BODY, message_id="in time", at=sent))
    UnverifiedDelivery.objects.update(received_at=clock.now() - timedelta(seconds=1800))
    ingress.post(BODY, signing.standard_webhooks(BODY, message_id="stale on arrival", at=sent))
    set_secret(ingress, signing.STANDARD_SECRET)
    done = reverify(facts(ingress), actor="ops")
    assert [Receipt.objects.get(id=one.receipt_id).idempotency_key for one in done.admitted] == ["in time"]
    assert "timestamp" in done.refused[0].reason


def test_the_url_that_was_signed_is_kept_for_the_later_check() -> None:
    ingress = open_endpoint("hubspot", "crm", "the-wrong-one")
    path = ingress.path + "?tenant=7"
    ingress.post(b"[]", signing.hubspot_v3(b"[]", "the-right-one", factories.PUBLIC_URL + path), path=path)
    set_secret(ingress, "the-right-one")
    assert len(reverify(facts(ingress), actor="ops").admitted) == 1


def test_what_is_held_shows_no_credential() -> None:
    ingress = open_endpoint(settings={"signature": {"kind": "token", "header": "Authorization", "prefix": "Bearer "}})
    ingress.post(BODY, {"Authorization": "Bearer someones-token", "Cookie": "c00kie"}, path=ingress.path + "?token=t0ken")
    row = UnverifiedDelivery.objects.get()
    shown = " ".join([row.headers, row.url, row.reason, row.evidence])
    for marker in ("someones-token", "c00kie", "t0ken"):
        assert marker not in shown
    assert secrets.decrypt(row.evidence)[0]["headers"] == {"authorization": "Bearer someones-token"}


def test_at_most_200_are_held_and_the_answer_stays_the_same() -> None:
    ingress = open_endpoint()
    now = clock.now()
    UnverifiedDelivery.objects.bulk_create(
        UnverifiedDelivery(endpoint_id=ingress.endpoint.id, body=b"", body_sha256="", headers="{}", reason="", received_at=now)
        for _ in range(199)
    )
    answers = [ingress.post(BODY, {}) for _ in range(3)]
    assert {(one.status_code, answer(one)["code"]) for one in answers} == {(401, "unverified")}
    assert UnverifiedDelivery.objects.count() == 200


def test_a_stranger_fills_its_own_share_and_what_was_not_kept_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unverified, "COUNTED_EVERY_SECONDS", 0.0)
    ingress = open_endpoint("github", secret="the-wrong-one")
    for number in range(unverified.MOST_OF_SENDER + 10):
        ingress.post(b"", {}, REMOTE_ADDR=f"198.51.100.{number}")
    assert UnverifiedDelivery.objects.count() == unverified.MOST_OF_SENDER
    ingress.post(BODY, signing.github(BODY, "the-right-one", delivery="real"), REMOTE_ADDR="203.0.113.9")
    set_secret(ingress, "the-right-one")
    done = reverify(facts(ingress), actor="ops")
    assert (len(done.admitted), len(done.refused), done.not_kept) == (1, unverified.MOST_OF_SENDER, 10)
    assert "10 more with a bad signature were not kept" in done.loss


def test_kept_deliveries_are_bounded_by_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unverified, "MOST_BYTES", 100)
    monkeypatch.setattr(unverified, "MOST_BYTES_OF_SENDER", 60)
    ingress = open_endpoint("github", secret="the-wrong-one")
    for sender in ("198.51.100.1", "203.0.113.9", "192.0.2.1"):
        for _ in range(2):
            ingress.post(b"x" * 40, {}, REMOTE_ADDR=sender)
    assert list(UnverifiedDelivery.objects.values_list("sender", "body_bytes")) == [("198.51.100.0/24", 40), ("203.0.113.0/24", 40)]


def test_a_rotation_begins_a_new_count() -> None:
    ingress = open_endpoint("github", secret="the-wrong-one")
    models.Endpoint.objects.update(unverified_not_kept=7)
    assert reverify(facts(ingress), actor="ops").not_kept == 7
    endpoints.rotate("default", ingress.endpoint.slug, stored_secrets.generated(), actor="ops")
    assert reverify(facts(ingress), actor="ops").not_kept == 0


def test_what_is_older_than_an_hour_makes_room_and_is_not_admitted() -> None:
    ingress = open_endpoint("github", secret="the-wrong-one")
    ingress.post(BODY, signing.github(BODY, "the-right-one", delivery="old"))
    UnverifiedDelivery.objects.update(received_at=clock.now() - timedelta(seconds=3601))
    ingress.post(BODY, signing.github(BODY, "the-right-one", delivery="new"))
    assert UnverifiedDelivery.objects.count() == 1
    set_secret(ingress, "the-right-one")
    assert len(reverify(facts(ingress), actor="ops").admitted) == 1


def test_a_held_delivery_that_came_in_meanwhile_is_a_duplicate() -> None:
    ingress = open_endpoint("github", secret="the-wrong-one")
    headers = signing.github(BODY, "the-right-one", delivery="guid")
    ingress.post(BODY, headers)
    set_secret(ingress, "the-right-one")
    assert ingress.post(BODY, headers).status_code == 202
    (one,) = reverify(facts(ingress), actor="ops").admitted
    assert one.code == "duplicate"
    assert Receipt.objects.count() == 1
