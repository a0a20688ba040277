"""The settle read costs what it asks for, whatever else is in the tables (docs/protocol.md#bounded-settle)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from connectors.routing.router import drain_receipts
from projection.database import clock
from projection.database.catalogue import statement
from projection.facts import RouteFacts
from projection.models import Event
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import change, open_ingress
from tests.support.rows import event_row, route_of
from tests.support.server_work import plan_of, refresh_statistics, server_work, texts_recorded

pytestmark = pytest.mark.usefixtures("database")

KEYS = 256
OTHERS = 20_000
ROUTE = route_of(settle_seconds=5.0)


def open_bursts(route: RouteFacts) -> list[str]:
    """One event with a deadline ahead for each of 256 projections."""
    first = event_row(route, source_id="0", next_attempt_at=clock.now() + timedelta(hours=1))
    copy_rows(first, KEYS - 1, ProjectionKey=hashed("key"), DeliveryKey=hashed("open"), EnqueueOrdinal="t.EnqueueOrdinal + 1 + n")
    return [str(key) for key in Event.objects.values_list("projection_key", flat=True)]


def other_pack_future() -> None:
    other = event_row(route_of(pack_id=2, id=2), next_attempt_at=clock.now() + timedelta(hours=1), pack_id=2)
    copy_rows(other, OTHERS - 1, ProjectionKey=hashed("other"), DeliveryKey=hashed("other"))


def same_pack_expired() -> None:
    """The same 256 projections, each with some eighty finished bursts."""
    past = event_row(ROUTE, next_attempt_at=clock.now() - timedelta(hours=1), source_id="0")
    key = "(SELECT SHA2(CONCAT('key', n MOD 255), 256))"
    copy_rows(past, OTHERS - 1, ProjectionKey=key, DeliveryKey=hashed("past"), NextAttemptAt="t.NextAttemptAt - INTERVAL n SECOND")


@pytest.mark.parametrize("beside", [other_pack_future, same_pack_expired])
def test_256_keys_cost_256_rows(beside: Callable[[], None]) -> None:
    keys = open_bursts(ROUTE)
    beside()
    refresh_statistics("_System_ConnectorEvent")
    now = clock.to_db(clock.now())
    with server_work() as work, texts_recorded() as texts:
        found = Event.objects.read_settle_deadlines(keys, now)
    assert len(found) == KEYS
    (text,) = texts
    assert [access["key"] for access in plan_of(text)] == ["ix_event_burst"]
    steps = work.counters["Handler_read_key"] + work.counters["Handler_read_next"]
    assert steps <= 512, work.counters
    assert work.counters["Handler_read_key"] <= 256 + 1, work.counters
    assert work.full_scan_rows <= KEYS + 1, "at most the temporary table of the groups"


def test_the_index_is_not_forced() -> None:
    assert "FORCE" not in statement("read_settle_deadlines").upper()


def test_more_keys_are_asked_for_in_statements_of_256() -> None:
    ingress = open_ingress()
    ingress.route(settle=3600.0)
    ingress.send(*[change(n) for n in range(KEYS + 44)])
    with texts_recorded() as texts:
        assert drain_receipts().events == KEYS + 44
    asked = [len(re.findall("'csp:[0-9a-f]{64}'", text)) for text in texts if "MIN(NextAttemptAt)" in text]
    assert asked == [KEYS, 44]
