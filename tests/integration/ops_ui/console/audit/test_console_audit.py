"""The audit page: what its filters find, one entry in full, and that nothing of the console changes or removes an entry."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db.models import Q
from django.test import Client
from django.urls import reverse

from connectors import audit_log
from connectors.models import AppendOnly, AuditEntry
from ops_ui.console.audit import reads as audit_reads
from ops_ui.console.lists import keyset
from projection.database.clock import now
from tests.integration.ops_ui.console.test_console_rights import ACTIONS, form, target
from tests.support import console_world
from tests.support.bulk_rows import copy_rows
from tests.support.console_world import BIG, HOSTILE

pytestmark = pytest.mark.usefixtures("database")
WRITES = re.compile(
    r"\b(UPDATE|DELETE|REPLACE|TRUNCATE)\s+(\w+\s+)?((FROM|INTO|TABLE)\s+)?`?_System_ConnectorAudit\b", re.IGNORECASE
)


def entry(
    actor: str = "ada", action: str = "lane.hold", target: str = "contact:1", *, minutes_ago: float = 0, **columns: Any
) -> int:
    at = now() - timedelta(minutes=minutes_ago)
    values = {"reason": "r", "count": 1, **columns}
    return AuditEntry.objects.create(at=at, actor=actor, action=action, target=target, **values).id


def shown(client: Client, **query: str) -> list[int]:
    found: Any = client.get("/admin/audit/", query).context["found"]
    return [row.id for row in found.rows]


def test_each_filter_alone_and_with_others() -> None:
    oldest = entry("ada", "lane.hold", "contact:1", minutes_ago=60, reason="The CRM is away")
    middle = entry("bob", "lane.hold", "contact:2", minutes_ago=30, reason="the crm again, 50% of it")
    newest = entry("ada", "route.publish", "default/contact", minutes_ago=10, reason="")
    client = console_world.client("viewer")
    assert shown(client) == [newest, middle, oldest]
    assert shown(client, sort="turned") == [oldest, middle, newest]
    assert shown(client, actor="ada") == [newest, oldest]
    assert shown(client, action="lane.hold") == [middle, oldest]
    assert shown(client, target="contact:2") == [middle]
    assert shown(client, reason="CRM") == [middle, oldest]
    assert shown(client, reason="50%") == [middle]
    assert shown(client, reason="5_%") == []
    assert shown(client, actor="ada", action="lane.hold") == [oldest]
    assert shown(client, actor="ada", target="contact:2") == []
    assert shown(client, actor="ada", reason="away", sort="turned") == [oldest]
    assert shown(client, since="45m") == [newest, middle]
    assert shown(client, until="20m") == [middle, oldest]
    assert shown(client, since="45m", until="20m", action="lane.hold") == [middle]
    assert shown(client, actor="nobody") == []


def test_the_end_of_a_time_range_is_not_in_it() -> None:
    row = AuditEntry.objects.get(id=entry())
    exactly = row.at.isoformat()
    client = console_world.client("viewer")
    assert shown(client, since=exactly) == [row.id]
    assert shown(client, until=exactly) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("since", "yesterday"), ("action", "é"), ("at", "after-1"), ("until", "0001-01-01T00:00Z"), ("since", "9999-12-31T23:59Z")],
)
def test_what_cannot_be_asked_for_gives_a_page(name: str, value: str) -> None:
    entry()
    assert console_world.client("viewer").get("/admin/audit/", {name: value}).status_code == 200


def test_pages_lead_forward_and_back() -> None:
    first = AuditEntry.objects.get(id=entry())
    copy_rows(first, 120)
    client = console_world.client("viewer")
    for query in ({}, {"actor": "ada"}, {"actor": "ada", "action": "lane.hold"}, {"reason": "r", "sort": "turned"}):
        pages, at = [], ""
        while True:
            found: Any = client.get("/admin/audit/", {**query, "at": at}).context["found"]
            pages.append([row.id for row in found.rows])
            if found.next is None:
                break
            at = str(found.next)
        assert [len(one) for one in pages] == [50, 50, 21]
        assert len({one for rows in pages for one in rows}) == 121
        back: Any = client.get("/admin/audit/", {**query, "at": str(found.previous)}).context["found"]
        assert [row.id for row in back.rows] == pages[1]
        start: Any = client.get("/admin/audit/", {**query, "at": str(back.previous)}).context["found"]
        assert [row.id for row in start.rows] == pages[0]
        assert start.previous is None


def test_a_search_stops_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyset, "SEARCHED", 40)
    monkeypatch.setattr(audit_reads, "ROWS_AT_ONCE", 15)
    wanted = entry(reason="the needle", minutes_ago=10)
    copy_rows(AuditEntry.objects.get(id=entry()), 100)
    client = console_world.client("viewer")
    looked, at = 0, ""
    while True:
        response: Any = client.get("/admin/audit/", {"reason": "needle", "at": at})
        found = response.context["found"]
        if found.rows:
            break
        looked += 1
        assert found.searched_at is not None
        assert "so far" in response.content.decode()
        at = str(found.next)
    assert ([row.id for row in found.rows], looked) == ([wanted], 2)
    assert found.next is None


def test_an_export_has_what_the_filter_finds_and_the_detail_as_it_is() -> None:
    kept = entry("ada", detail=f'{{"ordinal": {BIG}}}')
    entry("bob")
    response: Any = console_world.client("viewer").get("/admin/audit/", {"actor": "ada", "export": "json"})
    (line,) = [json.loads(text) for text in b"".join(response.streaming_content).splitlines()]
    assert (line["id"], line["actor"], line["detail"]) == (kept, "ada", f'{{"ordinal": {BIG}}}')


def test_an_entry_is_readable_in_full() -> None:
    detail = {"to": "v2", "number": int(BIG), "list": [1, 2], "none": None, "hostile": HOSTILE}
    made = entry(
        "ada", "route.publish", "default/orders", reason=f"because {HOSTILE}", detail=json.dumps(detail)[:-1] + ', "f": 1.10}'
    )
    client = console_world.client("viewer")
    page = client.get(f"/admin/audit/{made}/").content.decode()
    for text in ("route.publish", "default/orders", "v2", BIG, "[1, 2]", "null", "1.10", "?actor=ada", "?target=default%2Forders"):
        assert text in page, text
    assert "<svg onload" not in page
    assert f"/admin/audit/{made}/" in client.get("/admin/audit/").content.decode()
    assert client.get(f"/admin/audit/{made + 1}/").status_code == 404


@pytest.mark.parametrize("detail", ["", "[1]", "{}", '"text"'])
def test_an_entry_with_another_detail_is_shown_too(detail: str) -> None:
    assert console_world.client("viewer").get(f"/admin/audit/{entry(detail=detail)}/").status_code == 200


def test_the_model_takes_new_entries_only() -> None:
    row = AuditEntry.objects.get(id=entry())
    row.reason = "another"
    refused = (
        row.save,
        row.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(reason="another"),
        lambda: AuditEntry.objects.filter(id=row.id).update(reason="another"),
        lambda: AuditEntry.objects.bulk_update([row], ["reason"]),
        lambda: AuditEntry.objects.update_or_create(id=row.id, defaults={"reason": "another"}),
    )
    for attempt in refused:
        with pytest.raises(AppendOnly, match="only added"):
            attempt()
    assert AuditEntry.objects.get().reason == "r"
    audit_log.record("ada", "lane.release", "contact:1")
    assert AuditEntry.objects.count() == 2


def test_djangos_admin_has_no_page_of_entries_and_no_group_a_right_to_change_them() -> None:
    assert AuditEntry not in admin.site._registry
    rights = Permission.objects.filter(content_type__app_label="connectors", content_type__model="auditentry")
    given = rights.filter(Q(group__isnull=False)).values_list("codename", flat=True)
    assert set(given) == {"view_auditentry"}


def test_no_action_of_the_console_touches_the_entries_that_are_there() -> None:
    world = console_world.build()
    before = list(AuditEntry.objects.order_by("id").values())
    client = console_world.client("administrator")
    for action in ACTIONS:
        client.post(target(action, world), {**form(world), "id": world.entry, "entry": world.entry})
    for path in (reverse("admin:audit"), reverse("admin:audit_entry", args=[world.entry])):
        for method in (client.post, client.put, client.patch, client.delete):
            assert method(path).status_code == 405
    after = list(AuditEntry.objects.order_by("id").values())
    assert after[: len(before)] == before
    assert len(after) > len(before)  # what succeeded left entries of its own


def test_no_statement_of_ours_changes_or_removes_entries() -> None:
    texts = [
        path
        for config in apps.get_app_configs()
        if config.label in ("connectors", "projection", "ops_ui")
        for path in Path(config.path).rglob("*")
        if path.suffix in (".sql", ".py") and WRITES.search(path.read_text(encoding="utf-8"))
    ]
    assert texts == []
    for text in (
        "DELETE FROM `_System_ConnectorAudit`",
        "delete a from _System_ConnectorAudit a",
        "UPDATE `_System_ConnectorAudit` a SET",
    ):
        assert WRITES.search(text), text
