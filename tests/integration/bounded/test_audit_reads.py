"""The audit page costs the same whatever the trail holds: each filter reads its own index, whatever the server believes."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from connectors.models import AuditEntry
from ops_ui.console.lists import keyset
from projection.database.clock import now
from tests.support import console_world
from tests.support.bulk_rows import copy_rows
from tests.support.scale import size
from tests.support.server_work import believed_statistics, full_scans, plan_of, refresh_statistics, server_work, texts_recorded

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale]

TABLE = AuditEntry._meta.db_table
ENTRIES = size(30_000, 1_000_000)
INDEXES = {
    "": "ix_audit_at",
    "actor=rare": "ix_audit_actor",
    "actor=ada": "ix_audit_actor",
    "action=lane.rare": "ix_audit_action",
    "target=contact:rare": "ix_audit_target",
    "since=2h": "ix_audit_at",
    "until=2000-01-01T00:00Z": "ix_audit_at",
    "actor=ada&since=2h": "ix_audit_actor",
    "actor=ada&until=2000-01-01T00:00Z": "ix_audit_actor",
    "actor=ada&target=contact:rare": "ix_audit_target",
    "actor=ada&sort=turned": "ix_audit_actor",
}


def trail() -> None:
    """Very many entries of one actor over a year, and one of another at its beginning."""
    values: dict[str, Any] = {"at": now().replace(year=2020), "reason": "r"}
    AuditEntry.objects.create(actor="rare", action="lane.rare", target="contact:rare", **values)
    usual = AuditEntry.objects.create(actor="ada", action="lane.hold", target="contact:1", **values)
    copy_rows(usual, ENTRIES, At="TIMESTAMPADD(MINUTE, n, t.At)", Target="CONCAT('contact:', MOD(n, 500))")


def look(query: str) -> tuple[int, list[str], Any]:
    """Rows that the server reads for the page, the statements that read entries, and what was found."""
    client = Client()
    client.force_login(User.objects.filter(username="viewer").first() or console_world.user("viewer"))
    path = f"/admin/audit/?{query}"
    client.get(path)
    with server_work() as work:
        response: Any = client.get(path)
    assert response.status_code == 200
    with texts_recorded() as texts:
        client.get(path)
    return work.rows_read, [text for text in texts if TABLE in text], response.context["found"]


def check(query: str, index: str, most: int) -> Any:
    read, texts, found = look(query)
    (places, *rows) = texts
    assert [access["key"] for access in plan_of(places)] == [index], query
    assert "filesort" not in str(plan_of(places)[0]["extra"]).lower()
    assert full_scans(rows) == []
    assert read <= most, query
    return found


@pytest.mark.parametrize("statistics", ["old", "new", "wrong"])
def test_each_filter_reads_a_page_of_its_index(statistics: str) -> None:
    trail()
    if statistics == "wrong":
        with believed_statistics([TABLE], distinct=1, rows=10):
            for query, index in INDEXES.items():
                check(query, index, 1_500)
        return
    if statistics == "new":
        refresh_statistics(TABLE)
    for query, index in INDEXES.items():
        found = check(query, index, 1_500)
        if "rare" in query:
            assert [row.actor for row in found.rows] == ([] if "ada" in query else ["rare"])


def test_a_text_or_a_second_field_looks_no_further_than_a_search() -> None:
    trail()
    refresh_statistics(TABLE)
    for query, index in (("reason=nowhere", "ix_audit_at"), ("actor=ada&action=lane.rare", "ix_audit_actor")):
        found = check(query, index, 2 * keyset.SEARCHED + 1_500)
        assert found.rows == []
        assert found.searched_at is not None


def test_a_page_far_back_costs_what_the_first_does() -> None:
    trail()
    refresh_statistics(TABLE)
    middle = AuditEntry.objects.order_by("id")[ENTRIES // 2]
    cursor = keyset.Cursor("after", middle.id, middle.at)
    found = check(f"actor=ada&at={cursor}", "ix_audit_actor", 1_500)
    assert found.rows[0].id == middle.id - 1
