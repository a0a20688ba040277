"""Sources: each record once by its newest event, and the page of one with what became of its events."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from connectors.models import Record
from ops_ui.console.sources import reads as source_reads
from ops_ui.console.sources.reads import Source
from projection.database.clock import now
from projection.models import LaneHold
from tests.integration.ops_ui.console.test_console_pages import Markup
from tests.support import console_world, rows
from tests.support.console_world import HOSTILE

pytestmark = pytest.mark.usefixtures("database")


def path(type: str = "contact", id: str = "42", namespace: str = "default") -> str:
    return f"/admin/sources/one/?{urlencode({'namespace': namespace, 'type': type, 'id': id})}"


def listed(client: Client, **query: str) -> list[int]:
    context: Any = client.get("/admin/sources/", query).context
    return [row.id for row in context["found"].rows]


def test_each_source_is_listed_once_with_its_newest_event() -> None:
    for _ in range(3):
        forty_two = rows.event_row()
    company = rows.event_row(source_type="company")
    other = rows.event_row(rows.route_of(namespace="other"))
    rows.event_row(source_id="7")
    seven = rows.event_row(source_id="7")
    client = console_world.client("viewer")
    assert listed(client) == [seven.id, other.id, company.id, forty_two.id]
    assert listed(client, source="42") == [other.id, company.id, forty_two.id]
    assert listed(client, source="42", type="company") == [company.id]
    assert listed(client, type="company") == [company.id]
    assert listed(client, namespace="other") == [other.id]
    assert listed(client, kind="nothing") == []


def test_equality_of_sources_is_exact() -> None:
    rows.event_row(source_id="a")
    rows.event_row(source_id="a ")
    client = console_world.client("viewer")
    assert len(listed(client)) == 2
    history = source_reads.history(Source("default", "contact", "a"))
    assert [event.source_id for event in history.events] == ["a"]


def test_the_list_says_what_became_of_the_newest_event() -> None:
    world = console_world.build()
    text = Markup(console_world.client("viewer").get("/admin/sources/").content.decode()).text
    for shown in ("dead", "blocked", "contact:waiting contact.changed"):
        assert shown in text, shown
    assert world.source in text


def test_a_source_shows_which_work_took_which_events() -> None:
    first, second = rows.event_row(), rows.event_row()
    dead = rows.work_row(rows.event_row(), "dead", lane_position=first.enqueue_ordinal, last_error="ValueError: no")
    rows.failure_row(dead, outcome="dead")
    again = rows.replay_row(dead, "processed")
    active = rows.work_row(rows.event_row(), "retry")
    queued = rows.work_row(rows.event_row(), "blocked")
    unrouted = rows.event_row(None)
    LaneHold.objects.create(
        namespace="default", lane_key=active.lane_key, lane="contact:42", reason="r", held_by="ada", held_at=now()
    )
    history = source_reads.history(Source("default", "contact", "42"))
    assert [(one.item.work_id, len(one.inputs)) for one in history.generations] == [
        (queued.work_id, 1),
        (active.work_id, 1),
        (again.work_id, 1),
        (dead.work_id, 3),
    ]
    assert history.owners[first.id].work_id == history.owners[second.id].work_id == dead.work_id
    assert unrouted.id not in history.owners
    assert [(lane.name, lane.depth, lane.hold is not None) for lane in history.lanes] == [("contact:42", 2, True)]
    text = Markup(console_world.client("viewer").get(path()).content.decode()).text
    for shown in (
        "Waiting reason",
        "ValueError: no",
        "unrouted",
        "held",
        "7 events; 1 blocked, 1 dead, 1 processed, 1 retry",
    ):
        assert shown in text, shown


def test_a_live_generation_is_shown_however_old_its_inputs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    active = rows.work_row(rows.event_row(), "retry")
    monkeypatch.setattr(source_reads, "EVENTS_SHOWN", 3)
    for _ in range(4):
        newest = rows.event_row()
    queued = rows.work_row(newest, "blocked")
    history = source_reads.history(Source("default", "contact", "42"))
    assert history.has_more
    assert [(one.item.work_id, len(one.inputs), one.is_whole) for one in history.generations] == [
        (queued.work_id, 3, False),
        (active.work_id, 0, False),
    ]


def test_the_record_of_a_source_is_shown_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    world = console_world.build(masks=("$.email",))
    record = Record.objects.get()
    client = console_world.client("viewer")
    content = client.get(world.paths["source"]).content.decode()
    assert f"/admin/records/{record.id}/" in content
    assert "ada@example.com" not in content
    assert "9007199254740993" in content
    Record.objects.update(properties=json.dumps({"a": {"value": 1, "ordinal": 1}}), source_id="alone")
    assert "The events are no longer retained" in client.get(path(id="alone")).content.decode()


def test_an_unknown_source_is_not_found() -> None:
    client = console_world.client("viewer")
    for unknown in (path(), "/admin/sources/one/", path(id=HOSTILE), path(id="x" * 5000)):
        assert client.get(unknown).status_code == 404


def test_without_the_right_to_see_work_there_are_events_alone() -> None:
    rows.work_row(rows.event_row(), "retry")
    person = console_world.user(None, name="events-only")
    person.user_permissions.add(Permission.objects.get(codename="view_event"))
    client = Client()
    client.force_login(person)
    context: Any = client.get(path()).context
    assert (len(context["events"]), context["history"].generations, context["why"], context["live"]) == (1, [], None, [])


def test_the_sentence_why_it_does_not_run_is_set_as_on_other_pages() -> None:
    rows.work_row(rows.event_row(), "retry")
    text = console_world.client("viewer").get(path()).content.decode()
    sentence = text.partition('<span class="why-line">')[2].partition("</p>")[0]
    assert "script/manage activate_projection</bdi></code>" in sentence


def test_a_hostile_source_is_a_link_to_its_page() -> None:
    console_world.build(HOSTILE)
    client = console_world.client("viewer")
    links = [
        a["href"] for tag, a in Markup(client.get("/admin/sources/").content.decode()).elements if tag == "a" and a.get("href")
    ]
    hostile = next(link for link in links if link and link.startswith("/admin/sources/one/") and "svg" in link)
    assert "<svg onload=alert(1)>" in Markup(client.get(hostile).content.decode()).text
