"""Reading again: what was rejected by a wrong setting becomes events, what became events stays, and nothing is done twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.urls import reverse

from connectors.configuration import packs
from connectors.delivery import Outcome
from connectors.models import AuditEntry, Receipt
from connectors.operations import receipts
from connectors.routing.router import RouteReport, drain_receipts
from ops_ui.monitoring import alerts
from projection.models import Event, WorkItem
from tests.support import commands, console_world
from tests.support.deliveries import SETTINGS, Ingress, change, forget_caches, open_ingress

pytestmark = pytest.mark.usefixtures("sound_database")

MANY = {**SETTINGS, "kind": "typ"}
MANY_RIGHT = {**MANY, "kind": "kind"}
WRONG = {name: value for name, value in MANY.items() if name != "items"}
"""One event a request, under the event's id."""
RIGHT = {**WRONG, "kind": "kind"}


@pytest.fixture
def ingress() -> Ingress:
    made = open_ingress()
    made.route(mode="per_event")
    configure(made, WRONG)
    return made


def configure(ingress: Ingress, settings: dict[str, Any]) -> None:
    packs.configure(ingress.pack.namespace, ingress.pack.name, settings, actor="test")


def deliver(ingress: Ingress, event: dict[str, Any]) -> Outcome:
    return ingress.send_body(json.dumps(event).encode())


def route() -> RouteReport:
    forget_caches()
    return drain_receipts()


def read_again(*ids: int) -> receipts.Reread:
    return receipts.reread(ids or list(Receipt.objects.values_list("id", flat=True)), actor="me", reason="fixed")


def test_rejected_deliveries_become_events_after_the_setting_is_fixed(ingress: Ingress) -> None:
    for number in range(3):
        deliver(ingress, change(number))
    assert route().rejected_items == 3
    assert set(Receipt.objects.values_list("state", "rejected_count")) == {("rejected", 1)}
    configure(ingress, RIGHT)
    done = read_again()
    assert (len(done.queued), done.refused) == (3, ())
    assert drain_receipts().events == 3, "also where this process has kept the old settings"
    assert set(Receipt.objects.values_list("state", "event_count", "rejected_count", "verdicts")) == {("routed", 1, 0, None)}
    assert (Event.objects.count(), WorkItem.objects.count()) == (3, 3)
    entry = AuditEntry.objects.get(action="receipt.reread")
    assert (entry.actor, entry.reason, entry.count) == ("me", "fixed", 3)
    assert commands.run("audit")[0] == 0


def test_what_became_an_event_stays_one_even_where_its_id_is_found_elsewhere_now(ingress: Ingress) -> None:
    configure(ingress, MANY)
    ingress.send(change(1, typ="changed"), change(2))
    assert route().events == 1
    receipt = Receipt.objects.get()
    assert (receipt.state, receipt.event_count, receipt.rejected_count) == ("partial", 1, 1)
    configure(ingress, {**MANY_RIGHT, "delivery_id": "n"})
    read_again()
    report = route()
    assert (report.events, report.duplicates) == (1, 0)
    receipt.refresh_from_db()
    assert (receipt.state, receipt.item_count, receipt.event_count, receipt.rejected_count) == ("routed", 2, 2, 0)
    assert list(Event.objects.order_by("id").values_list("receipt_item", flat=True)) == [0, 1]
    read_again()
    assert route().events == 0
    receipt.refresh_from_db()
    assert (receipt.state, receipt.event_count) == ("routed", 2)


def test_a_body_that_cannot_be_read_any_more_loses_nothing(ingress: Ingress) -> None:
    configure(ingress, MANY_RIGHT)
    ingress.send(change(1))
    route()
    configure(ingress, {**MANY_RIGHT, "items": "elsewhere"})
    read_again()
    assert route().rejected_receipts == 1
    receipt = Receipt.objects.get()
    assert (receipt.state, receipt.event_count) == ("partial", 1)
    assert "elsewhere" in receipt.last_error
    assert Event.objects.count() == 1
    configure(ingress, MANY_RIGHT)
    read_again()
    assert route().events == 0
    receipt.refresh_from_db()
    assert (receipt.state, receipt.event_count, receipt.last_error) == ("routed", 1, None)


def test_a_resend_is_read_again_only_after_the_settings_changed(ingress: Ingress) -> None:
    body = change(1)
    first = deliver(ingress, body)
    route()
    again = deliver(ingress, body)
    assert (again.code, again.receipt_id) == ("duplicate", first.receipt_id)
    assert route().receipts == 0, "nothing has changed"
    configure(ingress, RIGHT)
    again = deliver(ingress, body)
    assert (again.code, again.status, again.receipt_id) == ("duplicate", 200, first.receipt_id)
    assert route().events == 1
    deliver(ingress, body)
    assert route().receipts == 0
    assert Receipt.objects.get().state == "routed"


def test_a_resend_is_read_again_after_an_upgrade(ingress: Ingress) -> None:
    body = change(1)
    deliver(ingress, body)
    route()
    upgraded = ingress.upgrade()
    deliver(upgraded, body)
    assert route().rejected_items == 1
    deliver(upgraded, body)
    assert route().receipts == 0


def test_a_receipt_from_before_its_settings_were_kept_is_read_again_once(ingress: Ingress) -> None:
    body = change(1)
    deliver(ingress, body)
    route()
    Receipt.objects.update(reading_key=None)
    deliver(ingress, body)
    assert route().receipts == 1
    deliver(ingress, body)
    assert route().receipts == 0


def test_an_item_in_conflict_makes_its_receipt_partial(ingress: Ingress) -> None:
    configure(ingress, MANY_RIGHT)
    ingress.send(change(1, id="a"))
    ingress.send(change(1, id="a"), change(2))
    report = route()
    assert (report.conflicts, report.events) == (1, 2)
    assert list(Receipt.objects.order_by("id").values_list("state", "conflict_count")) == [("routed", 0), ("partial", 1)]


def test_what_cannot_be_read_again_is_refused_with_the_reason(ingress: Ingress) -> None:
    configure(ingress, RIGHT)
    deliver(ingress, change(1, id="a"))
    deliver(ingress, change(2, id="a"))
    waiting, conflict = Receipt.objects.order_by("id")
    told = {one.code for one in read_again(waiting.id, conflict.id, 4711).refused}
    assert told == {"pending", "conflict", "not_found"}
    route()
    Receipt.objects.filter(id=waiting.id).update(event_count=2)
    assert [one.code for one in read_again(waiting.id).refused] == ["pruned"]
    Receipt.objects.filter(id=waiting.id).update(erasure_id=1)
    assert [one.code for one in read_again(waiting.id).refused] == ["erased"]
    Receipt.objects.filter(id=waiting.id).update(erasure_id=None, event_count=1)


def test_the_command_reads_again_by_id_and_by_filter(ingress: Ingress) -> None:
    for number in range(2):
        deliver(ingress, change(number))
    route()
    configure(ingress, RIGHT)
    first, second = Receipt.objects.order_by("id").values_list("id", flat=True)
    code, answer = commands.run("receipts", "reread", "--all", "--dry-run")
    assert (code, answer["receipts"]) == (0, [first, second])
    code, answer = commands.run("receipts", "reread", str(first), "4711", "--reason", "fixed")
    assert (code, answer["queued"], [one["code"] for one in answer["refused"]]) == (1, [first], ["not_found"])
    code, answer = commands.run("receipts", "reread", "--pack", "generic", "--endpoint", "main", "--reason", "fixed", "--yes")
    assert (code, answer["queued"], answer["more"]) == (0, [second], False)
    assert route().events == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name receipts by their ids, give a filter, or --all"),
        (("--pack", "nopack", "--reason", "r", "--yes"), "there is no pack 'nopack'"),
        (("--endpoint", "nowhere", "--reason", "r", "--yes"), "there is no endpoint 'nowhere'"),
        (("--since", "soon"), "soon"),
        (("--all", "--yes"), "--reason"),
        (("--all", "--reason", "r"), "--yes"),
    ],
)
def test_the_command_says_what_is_missing(ingress: Ingress, arguments: tuple[str, ...], told: str) -> None:
    deliver(ingress, change(1))
    route()
    with pytest.raises(CommandError, match=told):
        commands.say("receipts", "reread", *arguments)
    assert Receipt.objects.get().state == "rejected"


def test_the_list_and_the_page_have_the_button(ingress: Ingress) -> None:
    for number in range(2):
        deliver(ingress, change(number))
    route()
    configure(ingress, RIGHT)
    operator = console_world.client("operator")
    first, _ = Receipt.objects.order_by("id")
    assert "Read again" in operator.get(reverse("admin:receipt", args=[first.id])).content.decode()
    listed = operator.get(reverse("admin:receipts"), {"state": "rejected"}).content.decode()
    assert "Read all of this filter again" in listed
    assert "Read all" not in console_world.client("viewer").get(reverse("admin:receipts"), {"state": "rejected"}).content.decode()
    operator.post(reverse("admin:reread_receipt", args=[first.id]), {"reason": "fixed"})
    operator.post(f"{reverse('admin:reread_receipts')}?state=rejected", {"reason": "fixed"})
    assert set(Receipt.objects.values_list("state", flat=True)) == {"pending"}
    assert route().events == 2


def test_rejected_items_raise_an_alert_that_says_what_to_do(ingress: Ingress) -> None:
    assert "rejected_items" not in alerts.find_causes()
    deliver(ingress, change(1))
    route()
    cause = alerts.find_causes()["rejected_items"]
    assert "receipts reread" in cause.reason
    configure(ingress, RIGHT)
    read_again()
    route()
    assert "rejected_items" not in alerts.find_causes()
