"""The readiness of 130 lanes costs a handful of statements, whatever the depth of the lanes (docs/protocol.md#bounded-lanes)."""

from __future__ import annotations

import pytest

from connectors.routing.router import drain_receipts
from projection.completion import lanes
from projection.completion.complete import hand_off
from projection.database import clock
from projection.database.transactions import run_unit
from projection.facts import PER_EVENT
from projection.identity import lane_key
from projection.models import WorkItem
from projection.states import State
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import change, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.rows import event_row, route_of, work_row
from tests.support.server_work import Work, full_scans, refresh_statistics, server_work, texts_recorded
from tests.support.workers_by_hand import ByHand, item_of, let_retries_come_due, report

pytestmark = pytest.mark.usefixtures("database")

LANES = 130
TABLES = ("_System_ConnectorEvent", "_System_ConnectorWorkItem")
SINGLE = route_of("single", mode=PER_EVENT)


def heads(state: str = State.PROCESSING) -> list[WorkItem]:
    """One item in each of 130 lanes, and one blocked behind it."""
    found = []
    for number in range(LANES):
        found.append(work_row(event_row(SINGLE, source_id=str(number)), state))
        work_row(event_row(SINGLE, source_id=str(number)), State.BLOCKED)
    return found


def depth(head: WorkItem, *, terminal: int = 20_000, blocked: int = 5_000) -> None:
    """History and a queue in the head's own lane."""
    free = {"LaneHolderKey": "NULL", "LeaseToken": "NULL", "LeaseExpiresAt": "NULL", "LeaseOwner": "NULL"}
    copy_rows(
        head, terminal, WorkId=hashed("old"), State="'processed'", TerminalAt="UTC_TIMESTAMP(6)",
        LanePosition=f"t.LanePosition - {terminal} + n", **free,
    )  # fmt: skip
    copy_rows(
        head, blocked, WorkId=hashed("queue"), State="'blocked'", ClaimedAt="NULL", LanePosition="t.LanePosition + 1000 + n", **free
    )


def unrelated(count: int = 20_000) -> None:
    """Live and historical rows of other lanes."""
    other = work_row(event_row(SINGLE, source_id="other"), State.PENDING)
    copy_rows(other, count // 2, WorkId=hashed("live"), LaneKey=hashed("lane"))
    copy_rows(other, count // 2, WorkId=hashed("done"), LaneKey=hashed("lane"), State="'processed'", TerminalAt="UTC_TIMESTAMP(6)")


@pytest.fixture(params=["shallow", "deep"])
def lane_heads(request: pytest.FixtureRequest) -> list[WorkItem]:
    found = heads()
    unrelated()
    if request.param == "deep":
        depth(found[0])
    refresh_statistics(*TABLES)
    return found


def test_ending_130_heads_unblocks_130_lanes_in_eight_statements(lane_heads: list[WorkItem]) -> None:
    ids = [item.id for item in lane_heads]

    def end() -> tuple[tuple[int, int], Work, list[str]]:
        rows = WorkItem.objects.lock_work_items(ids)
        WorkItem.objects.complete_claimed_work_items(ids, {row.lease_token for row in rows}, State.PROCESSED)
        with server_work() as work, texts_recorded() as texts:
            counted = hand_off(rows)
        return counted, work, texts

    counted, work, texts = run_unit("test", end)
    assert counted == (0, LANES)
    assert len(texts) <= 8
    assert full_scans(texts) == []
    assert work.rows_read <= 8 * LANES, work.counters


def test_what_blocks_130_lanes_is_read_in_eight_statements(lane_heads: list[WorkItem]) -> None:
    keys = [str(item.lane_key) for item in lane_heads]
    now = clock.now()

    def look() -> dict[str, tuple[int, int]]:
        found = lanes.read_blockers(keys, now)
        locked = {row.id: row for row in WorkItem.objects.lock_work_items(row.id for row in found.values())}
        return lanes.still_blocking(found.values(), locked, now)

    with server_work() as work, texts_recorded() as texts:
        blocking = run_unit("test", look)
    assert blocking == {item.lane_key: (item.lane_position, item.id) for item in lane_heads}
    sent = [text for text in texts if "SELECT" in text]
    assert len(sent) <= 8
    assert full_scans(sent) == []
    assert work.rows_read <= 8 * LANES, work.counters


def test_admission_looks_at_130_lanes_with_two_statements() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    for _ in range(2):
        ingress.send(*[change(n) for n in range(LANES)])
        with texts_recorded() as texts:
            assert drain_receipts().events == LANES
    about_lanes = [text for text in texts if "`_System_ConnectorWorkItem`" in text and not text.startswith("INSERT")]
    assert 0 < len(about_lanes) <= 8
    assert set(states(5)) == {"pending", "blocked"}


def test_the_guards_decide_which_new_items_wait() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event", on=("changed",))
    ingress.route("settled", kind="contact.settled", on=("settled",), settle=3600.0)
    ingress.route("target", mode="per_event", kind="contact.moved", on=("moved",), target_lane="account:1")
    ingress.admit(change("running"), change("retrying"), change("settling", kind="settled"), change("a", kind="moved"))
    with recording():
        for attempt in ByHand().claim():
            if attempt.claimed.item.source_lane == "contact:retrying":
                report(attempt, State.RETRY, outcome="retry", error="no", delay_ms=3_600_000)
        ingress.admit(change("running"), change("retrying"), change("settling"), change("b", kind="moved"))
        assert states("running") == ["processing", "blocked"]
        assert states("retrying") == ["retry", "blocked"]
        assert states("settling") == ["pending", "pending"], "a settling item is passed over"
        assert states("a") + states("b") == ["processing", "blocked"], "they share the lane of their target"
        assert generations("b")[0].lane_key == lane_key("default", "", "", "account:1")
        let_retries_come_due()
        taken = [item_of(one) for one in ByHand("another").claim()]
        assert sorted((item.source_lane, item.attempts) for item in taken) == [("contact:retrying", 2), ("contact:settling", 1)]
