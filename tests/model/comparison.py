"""What product and reference must agree on after each step, and what must hold at the end of a history."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db import connection, transaction

from connectors.operations.ingress_audit import audit_everything
from projection.claiming.claim import ClaimedBatch, claim
from projection.database.clock import to_db
from projection.execution.attempts import Attempt
from projection.execution.execute import prepare
from projection.inputs.ranges import read_ranges
from projection.integrity.repair import Repaired, repair
from projection.models import Event as EventRow
from tests.model.values import PROCESSED, PROCESSING, QUEUED, RETRY, WAITING, Work
from tests.model.world import EVERYTHING, LEASE_SECONDS, OWNER, Held, World, describe


class Row(NamedTuple):
    """A work item as it is stored; times naive."""

    id: int
    work_id: str
    replay_of: str | None
    key: str | None
    active_key: str | None
    event: int
    ordinal: int
    created: datetime
    position: int
    namespace: str
    lane: str | None
    holder: str | None
    state: str
    run_after: datetime
    attempts: int
    claimed: datetime | None
    first_claimed: datetime | None
    lease_ends: datetime | None
    discarded: int
    pack: int
    ended: datetime | None


ROWS = """
SELECT Id, WorkId, ReplayOfWorkId, ProjectionKey, ProjectionActiveKey, EventId, LaneOrdinal, EventCreatedDate, LanePosition, Namespace,
       LaneKey, LaneHolderKey, State, RunAfter, Attempts, ClaimedAt, FirstClaimedAt, LeaseExpiresAt, DiscardedAt IS NOT NULL, PackId,
       TerminalAt
FROM `_System_ConnectorWorkItem`
"""


def compare(world: World) -> None:
    """The same events, work, ranges and claimable items."""
    _compare_events(world)
    found = rows(world)
    for work, row in found.items():
        assert row == _expected(world, work, row), describe(work)
    _compare_ranges(world, found)
    _compare_claimable(world, found)


def rows(world: World) -> dict[Work, Row]:
    """The row of each work item of the reference. Fails unless they are the same ones."""
    with connection.cursor() as cursor:
        cursor.execute(ROWS)
        by_id = {row.work_id: row for row in (Row(*values) for values in cursor.fetchall())}
    replays = {row.replay_of: row for row in by_id.values() if row.replay_of}
    found: dict[Work, Row] = {}
    for work in world.model.works:
        row = replays.get(found[work.replay_of].work_id) if work.replay_of else by_id.get(str(world.work_id(work)))
        assert row is not None, f"the product has no item for {describe(work)}; it has {sorted(by_id)}"
        found[work] = row
    assert len(found) == len(by_id), f"{len(by_id)} items instead of {len(found)}"
    return found


def row_of(world: World, work: Work) -> Row:
    return rows(world)[work]


EVENTS = """
SELECT Id, Namespace, EnqueueOrdinal, CreatedDate, DeliverySequence, SourceId, SourceLane, Payload, RouteId, ProjectionKey, NextAttemptAt,
       RoutedFromEventId, ReplayOfEventId
FROM `_System_ConnectorEvent` WHERE Id > %s ORDER BY Id
"""


def _compare_events(world: World) -> None:
    """The new ones, and who may run them."""
    new = sorted((event for event in world.model.events if event.number not in world.event_ids), key=lambda event: event.number)
    with connection.cursor() as cursor:
        cursor.execute(EVENTS, [max(world.event_ids.values(), default=0)])
        stored = cursor.fetchall()
    assert len(stored) == len(new)
    for row, event in zip(stored, new, strict=True):
        world.event_ids[event.number] = row[0]
        if event.route and event.replay_of is None:
            world.facts_ever.add(event)
        assert row[1:] == (
            event.namespace,
            event.ordinal,
            to_db(event.created),
            event.sequence,
            event.item.source,
            event.item.lane,
            event.item.payload,
            world.facts_of(event.route).id if event.route else None,
            world.projection_key(event),
            to_db(event.deadline),
            world.event_ids[event.routed_from] if event.routed_from else None,
            world.event_ids[event.replay_of] if event.replay_of else None,
        ), event
    if any(event.owned_by_event for event in world.model.events):
        owned = set(EventRow.objects.filter(executor_owner="event").values_list("id", flat=True))
        assert owned == {world.event_ids[event.number] for event in world.model.owned}


def _expected(world: World, work: Work, row: Row) -> Row:
    """The row that the item should have. Free are its id, a replay's name, and which of the waiting ones are `blocked` (7)."""
    key = world.projection_key(work.event)
    lane = world.lane_key(work.event.lane) if work.event.lane else None
    state = "blocked" if work.state == QUEUED else work.state
    free = work.state == WAITING and row.state in ("pending", "blocked")
    return Row(
        id=row.id,
        work_id=row.work_id,
        replay_of=row.replay_of,
        key=key,
        active_key=key if work.active and work.is_open else None,
        event=world.event_ids[work.event.number],
        ordinal=work.event.ordinal,
        created=to_db(work.event.created),
        position=work.first,
        namespace=work.event.namespace,
        lane=lane,
        holder=lane if work.state in (PROCESSING, RETRY) else None,
        state=row.state if free else state,
        run_after=to_db(work.run_after),
        attempts=work.attempts,
        claimed=to_db(work.claimed),
        first_claimed=to_db(work.first_claimed),
        lease_ends=to_db(work.lease_ends),
        discarded=int(work.discarded),
        pack=world.incarnations[work.route.pack][0],
        ended=to_db(work.ended),
    )


def _compare_ranges(world: World, found: dict[Work, Row]) -> None:
    ordinary = {work: row.id for work, row in found.items() if work.key and work.replay_of is None}
    ranges = read_ranges(ordinary.values()) if ordinary else {}
    for work, item in ordinary.items():
        expected = [world.event_ids[event.number] for event in world.model.inputs(work)]
        assert [row.id for row in ranges[item]] == expected, f"inputs of {describe(work)}"


def _compare_claimable(world: World, found: dict[Work, Row]) -> None:
    claimable = world.model.claimable()
    expected = sorted(found[work].id for work in claimable)
    offered = _offered()
    if any(work.workers_lost for work in claimable):
        assert len(offered) == 1, "a suspect runs apart"
        expected = [one for one in expected if one in offered]
    works = {row.id: describe(work) for work, row in found.items()}
    assert offered == expected, (
        f"a claim takes {[works[one] for one in offered]} instead of {[works[one] for one in expected]}\n{world}"
    )


def _offered() -> list[int]:
    """Ids of what a claim of everything takes; it is rolled back."""
    transaction.set_autocommit(False)
    try:
        batch = claim(EVERYTHING, owner=OWNER, lease_seconds=LEASE_SECONDS)
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    return sorted(one.item.id for one in batch.items)


def claim_some(world: World, limit: int) -> None:
    """Claim, and compare what was taken and its inputs. Which of the claimable ones a short batch takes is free."""
    claimable = world.model.claimable()
    batch = claim(limit, owner=OWNER, lease_seconds=LEASE_SECONDS)
    found = rows(world)
    while run := [work for work in world.model.run_by_old_binary() if found[work].ended]:
        world.account(run[0], world.model.inputs(run[0]))
        world.model.end(run[0], PROCESSED)
    works = {row.id: work for work, row in found.items()}
    taken = [works[one.item.id] for one in batch.items]
    assert set(taken) <= set(claimable), "an item was claimed that is not claimable"
    most = 1 if any(work.workers_lost for work in claimable) else limit
    assert len(taken) == min(most, len(claimable)), "a claim left work behind, or took more than one suspect"
    world.model.claim(taken)
    _run(world, batch, works)


def _run(world: World, batch: ClaimedBatch, works: dict[int, Work]) -> None:
    attempts, broken = prepare(batch, OWNER)
    assert not broken
    for attempt in attempts:
        work = works[attempt.claimed.item.id]
        world.running.append(Held(work, attempt))
        _compare_inputs(world, work, attempt)


def _compare_inputs(world: World, work: Work, attempt: Attempt) -> None:
    """Payloads and the facts' ordinals: a replay event passes for the event that it replays."""
    root = work.root.event.ordinal
    expected = [(root if event is work.event else event.ordinal, event.item.payload) for event in world.model.inputs(work)]
    assert [(one.ordinal, one.payload) for one in attempt.inputs] == expected, f"inputs of {describe(work)}"


def prove(world: World) -> None:
    """All work has ended: each fact was taken by exactly one ordinary item, there is nothing to repair, and the audit is clean."""
    assert EventRow.objects.count() == len(world.model.events)
    for event in world.facts_ever:
        assert world.taken[event] == 1, f"{event} was an input of {world.taken[event]} ordinary items"
    assert repair() == Repaired(0, 0, 0)
    report = audit_everything()
    assert report.ok, report.violations
