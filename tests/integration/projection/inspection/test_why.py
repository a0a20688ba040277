"""Why is this not running: what is read for the decision, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connectors.models import Namespace, Pack, Route
from projection import flows
from projection.admission import activation
from projection.database.clock import now
from projection.facts import Outage, RateLimit
from projection.inspection.why import why, why_each, why_lane
from projection.leases import ALIVE_SECONDS, Ending
from projection.limits import circuit_breaker, route_limits
from projection.models import Destination, LaneHold, ProjectionProtocol, RateBucket, Worker, WorkItem
from projection.states import State
from tests.support import factories
from tests.support.rows import CONTACTS, PAGES, event_row, work_row

pytestmark = pytest.mark.usefixtures("database")

LATER = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _running_system(database: None) -> Iterator[None]:
    activation.activate("test")
    worker()
    yield
    activation.forget()


def worker(flows_hash: str | None = None, **columns: object) -> Worker:
    values: dict[str, object] = {
        "kind": "worker",
        "host": "h",
        "pid": 1,
        "code_version": "1",
        "started_at": now(),
        "seen_at": now(),
    }
    known = Worker.objects.count()
    return Worker.objects.create(**{**values, "id": f"w{known}", "flows_hash": flows_hash or flows.flows_hash(), **columns})


def hold(item: WorkItem) -> None:
    LaneHold.objects.create(
        namespace="default", lane_key=item.lane_key, lane=item.source_lane, reason="outage", held_by="ann", held_at=now()
    )


def test_a_due_item() -> None:
    assert why(work_row(event_row(PAGES))).code == "due"


def test_a_settling_item() -> None:
    item = work_row(event_row(), run_after=now() + LATER)
    item.refresh_from_db()
    assert (why(item).code, why(item).until) == ("settling", item.run_after)


def test_a_queued_successor() -> None:
    active = work_row(event_row(), "processing")
    found = why(work_row(event_row(), "blocked"))
    assert (found.code, found.blocking_work_id) == ("queued", active.work_id)


def test_a_lane_behind_a_waiting_retry() -> None:
    head = work_row(event_row(PAGES), "retry")
    blocked = work_row(event_row(PAGES), "blocked")
    found = why(blocked)
    head.refresh_from_db()
    assert (found.code, found.blocking_work_id, found.until) == ("blocked", head.work_id, head.run_after)


def test_a_settling_item_ahead_blocks_nothing_and_a_due_one_does() -> None:
    settling = work_row(event_row(CONTACTS), run_after=now() + LATER)
    first = work_row(event_row(PAGES))
    second = work_row(event_row(PAGES))
    assert why(first).code == "due"
    assert why(second).blocking_work_id == first.work_id
    assert why(settling).code == "settling"


def test_items_of_other_lanes_do_not_matter() -> None:
    work_row(event_row(PAGES, source_id="1"), "processing")
    assert why(work_row(event_row(PAGES, source_id="2"))).code == "due"
    assert why(work_row(event_row(PAGES, source_lane=""))).code == "due"


def test_a_held_lane() -> None:
    item = work_row(event_row(PAGES))
    hold(item)
    assert "held by ann" in why(item).sentence


@pytest.mark.parametrize("paused", ["namespace", "pack", "route"])
def test_a_pause_anywhere_above(paused: str) -> None:
    pack = factories.install("generic")
    item = work_row(event_row(factories.route(pack, "orders")))
    {"namespace": Namespace, "pack": Pack, "route": Route}[paused].objects.update(paused_at=now())
    names = {"namespace": "namespace default", "pack": "pack generic", "route": "route orders"}
    assert f"{names[paused]} paused" in why(item).sentence.lower()


def test_a_pause_that_is_over_is_no_reason() -> None:
    pack = factories.install("generic")
    item = work_row(event_row(factories.route(pack, "orders")))
    Route.objects.update(paused_at=now() - LATER, resume_at=now())
    assert why(item).code == "due"


def test_a_parked_destination_and_an_exhausted_limit() -> None:
    pack = factories.install("generic")
    facts = factories.route(pack, "orders", limit=RateLimit("api", 10, 1.0))
    item = work_row(event_row(facts))
    assert why(item).code == "due"
    route_limits.declare([item.route_id])
    RateBucket.objects.update(next_slot_at=now() + LATER)
    found = why(item)
    assert (found.code, found.until) == ("limited", RateBucket.objects.get().next_slot_at)
    endings = [Ending(item, "token", State.RETRY, destination="log", seen=Outage("503", True, 60.0))]
    assert circuit_breaker.record(endings) == {"log"}
    found = why(item)
    assert (found.code, found.until) == ("parked", Destination.objects.get().parked_until)
    assert "Destination log is parked (circuit open)" in found.sentence


def test_a_projection_before_activation() -> None:
    ProjectionProtocol.objects.all().delete()
    activation.forget()
    assert why(work_row(event_row())).code == "not_activated"


def test_no_live_worker() -> None:
    Worker.objects.update(seen_at=now() - timedelta(seconds=ALIVE_SECONDS + 5))
    assert why(work_row(event_row(PAGES))).code == "no_worker"


def test_a_router_is_no_worker() -> None:
    Worker.objects.update(kind="router")
    assert why(work_row(event_row(PAGES))).code == "no_worker"


def test_a_flow_that_no_live_worker_has() -> None:
    item = work_row(event_row(PAGES), companion_pack="acme", companion_flow="unheard_of")
    assert why(item).code == "no_flow"
    worker("another set of flows")
    assert why(item).code == "due"


def test_an_ended_item_needs_nothing_else() -> None:
    assert why(work_row(event_row(), "dead", last_error="ValueError: no")).code == "dead"


def test_the_cost_does_not_grow_with_the_lane() -> None:
    work_row(event_row(PAGES), "processing")
    items = [work_row(event_row(PAGES), "blocked") for _ in range(30)]
    why(items[0])  # what a process asks once
    with CaptureQueriesContext(
        connection,
    ) as queries:
        why(items[-1])
    assert len(queries) <= 5


def test_a_lane_gives_the_reason_of_its_head() -> None:
    head = work_row(event_row(PAGES), "retry", last_error="ValueError: no")
    work_row(event_row(PAGES), "blocked")
    assert head.lane_key is not None
    found = why_lane(head.lane_key)
    assert (found.code, found.blocking_work_id) == ("retry", head.work_id)


def test_a_lane_whose_items_all_settle_gives_the_one_due_next() -> None:
    work_row(event_row(CONTACTS), run_after=now() + 2 * LATER)
    soon = work_row(event_row(PAGES), run_after=now() + LATER)
    assert soon.lane_key is not None
    assert why_lane(soon.lane_key).blocking_work_id == soon.work_id


def test_an_empty_lane_is_idle() -> None:
    item = work_row(event_row(PAGES), "processed")
    assert item.lane_key is not None
    assert why_lane(item.lane_key).code == "idle"


def test_a_stranded_lane_says_so() -> None:
    item = work_row(event_row(PAGES), "blocked")
    assert item.lane_key is not None
    assert why_lane(item.lane_key).code == "stranded"


def test_an_item_that_was_pruned_meanwhile_is_told_from_one_that_waits() -> None:
    item = work_row(event_row())
    WorkItem.objects.filter(id=item.id).delete()
    with pytest.raises(WorkItem.DoesNotExist, match=f"{item.work_id} is no longer retained"):
        why(item)


def a_page_of_items() -> list[WorkItem]:
    """Items that wait for something different each, several of them in one lane."""
    active = work_row(event_row(source_id="1"), "processing")
    items = [active, work_row(event_row(source_id="1"), "blocked")]
    items += [work_row(event_row(PAGES, source_id="2"), state) for state in ("retry", "blocked", "blocked")]
    items += [work_row(event_row(PAGES, source_id="3")) for _ in range(3)]
    items += [work_row(event_row(source_id="4"), run_after=now() + LATER), work_row(event_row(source_id="5"), "dead")]
    held = work_row(event_row(PAGES, source_id="6"))
    hold(held)
    facts = factories.route(factories.install("github"), "orders", limit=RateLimit("api", 10, 1.0))
    limited = work_row(event_row(facts, source_id="7"))
    why(limited)
    route_limits.declare([limited.route_id])
    RateBucket.objects.update(next_slot_at=now() + LATER)
    paused = work_row(event_row(factories.route(factories.install("hubspot"), "paused"), source_id="8"))
    Route.objects.filter(route_key="paused").update(paused_at=now())
    return [*items, held, limited, paused, work_row(event_row(PAGES, source_id="9", source_lane=""))]


def test_a_page_has_the_reason_of_each_item() -> None:
    items = a_page_of_items()
    found = why_each(items)
    assert found == {item.id: why(item) for item in items}
    codes = [found[item.id].code for item in items]
    assert codes == [
        "processing",
        "queued",
        "retry",
        "blocked",
        "blocked",
        "due",
        "blocked",
        "blocked",
        "settling",
        "dead",
        "held",
        "limited",
        "paused",
        "due",
    ]
    assert found[items[7].id].blocking_work_id == items[5].work_id


def test_a_page_costs_as_much_as_one_item() -> None:
    items = a_page_of_items()
    why_each(items)  # what a process asks once
    with CaptureQueriesContext(connection) as queries:
        why_each(items)
    assert len(queries) <= 5
    assert why_each([]) == {}


def test_a_page_leaves_out_what_was_pruned_meanwhile() -> None:
    kept, gone = work_row(event_row(source_id="1")), work_row(event_row(source_id="2"))
    WorkItem.objects.filter(id=gone.id).delete()
    assert why_each([kept, gone]).keys() == {kept.id}
