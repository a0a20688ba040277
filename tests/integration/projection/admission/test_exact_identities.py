"""Ids that a collation takes for equal stay four records, and ids that are missing make nothing equal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from connectors.models import Receipt
from connectors.routing.router import drain_receipts
from projection.execution.worker import drain_claims
from projection.models import Event, WorkItem
from tests.support.altered_columns import altered
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording

IDS = ("🎩", "💥", "api_4qD", "api_4Qd")
COLLATIONS = {"own": None, "case-insensitive": "utf8mb4_general_ci", "pad space": "utf8mb4_bin", "unicode": "utf8mb4_unicode_ci"}


@pytest.fixture(params=COLLATIONS)
def id_columns(request: pytest.FixtureRequest, sound_database: None) -> Iterator[None]:
    """The readable id columns with the collation of an older installation."""
    collation = COLLATIONS[request.param]
    columns = {
        "SourceId": f"VARCHAR(512) COLLATE {collation} NOT NULL",
        "SourceLane": f"VARCHAR(700) COLLATE {collation} NOT NULL",
        "DeliveryId": f"VARCHAR(255) COLLATE {collation} NOT NULL",
    }
    with altered("_System_ConnectorEvent", **columns) if collation else nullcontext():
        yield


@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "one by one"])
@pytest.mark.parametrize("ids", [IDS, ("a", "a ", "á", "A")], ids=["emoji and case", "accents and spaces"])
@pytest.mark.parametrize("settle", [0.0, 3600.0], ids=["at once", "settled"])
def test_look_alikes_are_four_records_four_projections_four_events(
    id_columns: None, together: bool, ids: tuple[str, ...], settle: float
) -> None:
    ingress = open_ingress()
    ingress.route(settle=settle)
    events = [change(id, id=id) for id in ids]
    for batch in [events] if together else [[event] for event in events]:
        report = ingress.admit(*batch)
        assert (report.events, report.duplicates) == (len(batch), 0)
    stored = Event.objects.order_by("enqueue_ordinal")
    assert [event.source_id for event in stored] == list(ids)
    for key in ("projection_key", "source_key", "delivery_key"):
        assert len({getattr(event, key) for event in stored}) == 4
    assert WorkItem.objects.filter(projection_active_key__isnull=False).count() == 4
    again = ingress.admit(*[change(id) for id in ids])
    assert (again.events, WorkItem.objects.count()) == (4, 4)
    WorkItem.objects.update(run_after=stored[0].created_date)
    with recording() as seen:
        assert drain_claims() == 4
    assert sorted(inputs for _, _, inputs in seen.runs) == [[1, 5], [2, 6], [3, 7], [4, 8]]


@pytest.mark.parametrize("absent", [None, "", "   "], ids=["absent", "empty", "blank"])
@pytest.mark.usefixtures("sound_database")
def test_deliveries_without_an_id_are_never_duplicates_of_each_other(absent: str | None) -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    bodies = [{**change(n), "id": absent} for n in range(3)]
    if absent is None:
        bodies = [{name: value for name, value in body.items() if name != "id"} for body in bodies]
    for body in bodies:
        outcome = ingress.send(body)
        assert (outcome.status, outcome.code) == (202, "accepted")
    report = drain_receipts()
    assert (report.receipts, report.events, report.duplicates) == (3, 3, 0)
    assert Receipt.objects.count() == Event.objects.values("delivery_key").distinct().count() == 3
    assert WorkItem.objects.count() == 3


@pytest.mark.usefixtures("sound_database")
def test_the_same_body_without_an_id_may_be_a_new_fact() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    body = {**change(7), "id": ""}
    ingress.send(body)
    ingress.send(body)
    assert drain_receipts().events == 2
