"""The page Trace: one address for the whole way of an id, what matched, and what was looked for where nothing did."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.integration.ops_ui.console.test_console_pages import Markup
from tests.support import console_world, factories, rows
from tests.support.console_world import HOSTILE

pytestmark = pytest.mark.usefixtures("database")


def ask(client: Client, **query: str) -> Any:
    response = client.get("/admin/trace/", query)
    assert response.status_code == 200
    return response


def test_a_delivery_id_shows_the_whole_way() -> None:
    site = factories.install()
    receipt = factories.receipt(site, {}, delivery_id="req-1", state="routed", duplicate_count=3)
    event = rows.event_row(receipt_id=receipt.id, delivery_id="evt-1")
    dead = rows.work_row(event, "dead")
    rows.failure_row(dead, "ValueError: no such account", outcome="dead")
    again = rows.replay_row(dead, "processed")
    response = ask(console_world.client("viewer"), q="evt-1")
    assert [way.item.work_id for way in response.context["ways"]] == [again.work_id, dead.work_id]
    text = Markup(response.content.decode()).text
    for shown in ("delivery id of an event", "Attempt 1 failed", "ValueError: no such account", "Replayed", "routing"):
        assert shown in text, shown
    for link in (f"/admin/receipts/{receipt.id}/", f"/admin/events/{event.id}/", f"/admin/generations/{dead.work_id}/"):
        assert link in response.content.decode(), link


def test_several_matches_are_listed_and_can_be_narrowed() -> None:
    rows.work_row(rows.event_row(rows.PAGES, id=4242, source_id="x"))
    rows.work_row(rows.event_row(source_id="4242"))
    client = console_world.client("viewer")
    assert [match.way for match in ask(client, q="4242").context["trace"].matches] == ["event", "source_id"]
    narrowed = ask(client, q="4242", **{"as": "source_id"})
    assert [event.source_id for event in narrowed.context["trace"].events] == ["4242"]
    assert "Search in all fields" in narrowed.content.decode()
    assert "as=source_id" in ask(client, q="4242").content.decode()


def test_nothing_says_what_was_looked_for() -> None:
    text = Markup(ask(console_world.client("viewer"), q="no such thing").content.decode()).text
    for shown in ("No match for no such thing", "delivery id of a receipt", "number of an event", "source lane", "30 days"):
        assert shown in text, shown


def test_spaces_of_a_paste_do_not_matter_and_spaces_of_an_id_do() -> None:
    rows.work_row(rows.event_row(rows.PAGES, delivery_id="evt 1 "))
    rows.work_row(rows.event_row(rows.PAGES, delivery_id="evt-2"))
    client = console_world.client("viewer")
    assert ask(client, q="evt 1 ").context["trace"].found
    assert ask(client, q=" evt-2\t").context["trace"].found
    assert not ask(client, q="evt 1").context["trace"].found


@pytest.mark.parametrize("text", ["x" * 5000, "9" * 30, "\x00", "ünknown", "' OR 1=1 --", "%", "csp:", " "])
def test_odd_texts_give_a_page(text: str) -> None:
    rows.work_row(rows.event_row())
    ask(console_world.client("viewer"), q=text, **{"as": "nothing"})


def test_a_hostile_id_is_echoed_as_text() -> None:
    client = console_world.client("viewer")
    console_world.build(HOSTILE)
    for text in (HOSTILE, f"{HOSTILE}?"):
        markup = Markup(ask(client, q=text).content.decode())
        assert not any(name.startswith("on") for _, attributes in markup.elements for name in attributes)
        assert not any(tag == "img" and attributes.get("src") == "x" for tag, attributes in markup.elements)
    assert "{{7*7}}" in markup.text


def test_waiting_work_says_why() -> None:
    world = console_world.build()
    text = Markup(ask(console_world.client("viewer"), q=world.work).content.decode()).text
    assert "Waiting reason" in text


def test_each_part_needs_the_permission_of_its_page() -> None:
    world = console_world.build()
    person = console_world.user(None, name="events-only")
    person.user_permissions.add(Permission.objects.get(codename="view_event"))
    client = Client()
    client.force_login(person)
    shown = ask(client, q=world.dead).context["trace"]
    assert (shown.receipts, shown.work_items, shown.failures, shown.matches) == ([], [], [], [])
    assert ask(client).context["examples"] == []
    stranger = console_world.client(None)
    assert stranger.get("/admin/trace/", {"q": world.dead}).status_code == 403
    assert 'class="quick"' not in stranger.get("/admin/").content.decode()


def test_the_box_is_on_every_page() -> None:
    world = console_world.build()
    client = console_world.client("viewer")
    for name, path in world.paths.items():
        assert 'class="quick"' in client.get(path).content.decode(), name


def test_the_number_of_queries_does_not_grow() -> None:
    client = console_world.client("viewer")
    counted = []
    for more in (1, 40):
        for _ in range(more):
            rows.work_row(rows.event_row(), "processed")
        with CaptureQueriesContext(connection) as queries:
            ask(client, q="contact:42")
        counted.append(len(queries))
    assert counted[0] == counted[1] <= 40
