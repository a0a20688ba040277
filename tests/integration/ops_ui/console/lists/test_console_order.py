"""250 rows with equal times over the pages of each list, in each order and with each kind of filter: each once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext

from connectors import models
from projection.models import Event, LaneHold, WorkItem
from projection.states import State
from tests.support import console_world, factories, rows
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.console_world import HOSTILE

pytestmark = pytest.mark.usefixtures("database")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MANY = 250
THREE = "ELT(1 + MOD(n, 3), 'processed', 'skipped', 'dead')"


def receipts() -> None:
    first = factories.receipt(factories.install(), {}, state="routed", received_at=NOON)
    copy_rows(first, MANY - 1, IdempotencyHash="NULL", State="ELT(1 + MOD(n, 3), 'routed', 'pending', 'rejected')")


def events() -> None:
    event = rows.event_row(source_id="7", delivery_id="d", created_date=NOON)
    copy_rows(event, MANY - 1, DeliveryKey=hashed("d"), EnqueueOrdinal="n + 100")


def generations() -> None:
    facts = factories.route(factories.install(), "orders", mode="projection")
    item = rows.work_row(rows.event_row(facts), State.DEAD, terminal_at=NOON, created_date=NOON)
    WorkItem.objects.update(run_after=NOON)
    item.refresh_from_db()
    copy_rows(item, MANY - 1, WorkId=hashed("w"), State=THREE)


def dead_letters() -> None:
    facts = factories.route(factories.install(), "orders", mode="projection")
    item = rows.work_row(rows.event_row(facts), State.DEAD, terminal_at=NOON, created_date=NOON, error_fingerprint="f" * 64)
    copy_rows(item, MANY - 1, WorkId=hashed("w"))


def waiting() -> None:
    item = rows.work_row(rows.event_row(), State.PENDING, created_date=NOON)
    copy_rows(item, MANY - 1, WorkId=hashed("w"), ProjectionActiveKey="NULL", LaneKey=hashed("l"))


def sources() -> None:
    event = rows.event_row(source_id="7", created_date=NOON)
    copy_rows(event, MANY - 1, DeliveryKey=hashed("d"), SourceId="CONCAT('s', n)", SourceKey=hashed("s"))


def records() -> None:
    world = console_world.build()
    record = models.Record.objects.get(id=world.record)
    copy_rows(record, MANY - 1, RecordKey=hashed("r"))


def unverified() -> None:
    world = console_world.build()
    copy_rows(models.UnverifiedDelivery.objects.get(id=world.unverified), MANY - 1)


def audits() -> None:
    entry = models.AuditEntry.objects.create(at=NOON, actor="ada", action="lane.hold", target="x", reason="r")
    copy_rows(entry, MANY - 1)


def routes() -> None:
    row = models.Route.objects.get(id=factories.route(factories.install(), "orders").id)
    models.Route.objects.update(created_at=NOON)
    copy_rows(row, MANY - 1, RouteKey="CONCAT('r', n)")


def holds() -> None:
    hold = LaneHold.objects.create(namespace="default", lane_key="x", lane="l", reason="r", held_by="ada", held_at=NOON)
    copy_rows(hold, MANY - 1, LaneKey=hashed("l"))


def jobs() -> None:
    console_world.build()
    from projection.job_models import Job

    copy_rows(Job.objects.exclude(state="preview").get(), MANY - 1)


ONE_WAY, BOTH_WAYS = ("",), ("", "turned")
LISTS: tuple[tuple[str, Callable[[], None], tuple[str, ...], tuple[dict[str, str], ...]], ...] = (
    ("receipts", receipts, BOTH_WAYS, ({}, {"state": "routed"}, {"state": "pending"}, {"pack": "generic"})),
    ("events", events, BOTH_WAYS, ({}, {"source": "7"}, {"delivery": "d"}, {"kind": "contact.changed"})),
    (
        "generations",
        generations,
        BOTH_WAYS,
        (
            {},
            {"state": "dead"},
            {"state": "skipped"},
            {"source": "contact:42"},
            {"route": "orders"},
            {"route": "orders", "state": "dead"},
        ),
    ),
    ("generations", waiting, BOTH_WAYS, ({"state": "pending"},)),
    ("dead-letters", dead_letters, ONE_WAY, ({}, {"show": "all"}, {"route": "orders"}, {"fingerprint": "f" * 64})),
    ("lanes", waiting, ONE_WAY, ({}, {"head": "pending"})),
    ("lanes", holds, ONE_WAY, ({"head": "held"},)),
    ("sources", sources, ONE_WAY, ({}, {"type": "contact"}, {"namespace": "default"})),
    ("records", records, BOTH_WAYS, ({}, {"kind": "contact.changed"})),
    ("unverified", unverified, BOTH_WAYS, ({},)),
    ("routes", routes, BOTH_WAYS, ({},)),
    ("audit", audits, BOTH_WAYS, ({}, {"actor": "ada"}, {"action": "lane.hold", "reason": "R"})),
    ("replays", jobs, ONE_WAY, ({},)),
)


def key(row: Any) -> Any:
    return row.id if isinstance(row, Model) else row.key


def crawl(client: Client, path: str, query: dict[str, str]) -> list[Any]:
    """What all pages show, following the links to the next one. Each page reads by position, never by counting."""
    seen: list[Any] = []
    at = ""
    while True:
        with CaptureQueriesContext(connection) as queries:
            context: Any = client.get(path, {**query, "at": at}).context
        texts = [one["sql"] for one in queries if "_System_Connector" in one["sql"]]
        assert not any(" OFFSET " in text for text in texts)
        found = context["found"]
        seen += [key(row) for row in found.rows]
        if found.next is None:
            return seen
        at = str(found.next)


@pytest.mark.parametrize(("name", "make", "orders", "filters"), LISTS, ids=[f"{one[0]}-{one[1].__name__}" for one in LISTS])
def test_rows_with_equal_times_are_on_exactly_one_page(
    name: str, make: Callable[[], None], orders: tuple[str, ...], filters: tuple[dict[str, str], ...]
) -> None:
    make()
    client = console_world.client("administrator")
    for chosen in filters:
        shown = {}
        for order in orders:
            seen = crawl(client, f"/admin/{name}/", {**chosen, "sort": order})
            assert len(seen) == len(set(seen)), (chosen, order)
            shown[order] = seen
        assert len(shown[""]) >= MANY // 3, chosen
        if "turned" in shown:
            assert shown["turned"] == shown[""][::-1], chosen
    if {} in filters:
        everything = crawl(client, f"/admin/{name}/", {})
        assert len(everything) >= MANY


def test_the_filter_of_three_states_splits_the_rows() -> None:
    generations()
    client = console_world.client("viewer")
    parts = [crawl(client, "/admin/generations/", {"state": state}) for state in ("processed", "skipped", "dead")]
    assert sorted(one for part in parts for one in part) == sorted(WorkItem.objects.values_list("id", flat=True))


@pytest.mark.parametrize("sort", ["turned", "", "id", "-id", "1; DROP TABLE x", HOSTILE, "password"])
def test_a_sort_is_one_of_those_that_an_index_serves_or_none(sort: str) -> None:
    events()
    client = console_world.client("viewer")
    context: Any = client.get("/admin/events/", {"sort": sort}).context
    shown = [row.id for row in context["found"].rows]
    assert shown == sorted(shown, reverse=sort != "turned")
    assert len(shown) == 50


def test_the_order_is_shown_at_its_column_and_turned_by_it() -> None:
    events()
    client = console_world.client("viewer")
    page = client.get("/admin/events/", {"source": "7"}).content.decode()
    assert 'aria-sort="descending"' in page
    assert 'href="?source=7&amp;sort=turned"' in page
    turned = client.get("/admin/events/", {"source": "7", "sort": "turned"}).content.decode()
    assert 'aria-sort="ascending"' in turned
    assert 'href="?source=7"' in turned
    assert '<input type="hidden" name="sort" value="turned">' in turned
    assert Event.objects.count() == MANY
