"""A broken projection never makes admission or completion lock more than K + 1 rows: it is refused
(docs/protocol.md#bounded-successors).
"""

from __future__ import annotations

import itertools

import pytest

from connectors.models import Receipt
from connectors.routing.router import drain_receipts
from projection.completion.complete import complete
from projection.execution.attempts import Attempt
from projection.models import WorkItem
from projection.refusals import Ambiguous
from projection.states import State
from tests.support.altered_columns import altered
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.gates import Gate, stopped_at
from tests.support.server_work import locked_ids, refresh_statistics, server_work
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("database")

TABLE = "_System_ConnectorWorkItem"
TERMINAL = 500
KEYS = 128


def running(keys: int) -> tuple[Ingress, list[Attempt]]:
    """As many projections whose generation is being executed."""
    ingress = open_ingress()
    ingress.route()
    ingress.admit(*[change(n) for n in range(keys)])
    with recording():
        attempts = ByHand().claim(keys)
    assert len(attempts) == keys
    return ingress, attempts


def frozen(keys: int) -> Ingress:
    return running(keys)[0]


def queue(count: int, keys: int) -> list[int]:
    """Plant `count` queued successors on the first projections; 500 terminal generations over all of them. Ids of the planted."""
    actives = list(WorkItem.objects.order_by("id"))
    for number, active in zip(range(20), itertools.cycle(actives), strict=False):
        finished = {
            "State": "'processed'",
            "TerminalAt": "UTC_TIMESTAMP(6)",
            "ProjectionActiveKey": "NULL",
            "LaneHolderKey": "NULL",
        }
        copy_rows(active, TERMINAL // 20, WorkId=hashed(f"old {number} "), LaneOrdinal="0", **finished)
    targets = actives[: max(1, min(keys, count // 2))]
    for number in range(count):
        waiting = {"State": "'blocked'", "ProjectionActiveKey": "NULL", "LaneHolderKey": "NULL", "ClaimedAt": "NULL"}
        copy_rows(targets[number % len(targets)], 1, WorkId=hashed(f"queued {number} "), **waiting)
    return list(WorkItem.objects.filter(state=State.BLOCKED).order_by("id").values_list("id", flat=True))


BROKEN = pytest.mark.parametrize(("keys", "ambiguous", "locked"), [(1, 33, 2), (3, 2, 2), (3, 4, 4), (128, 160, 129)])


@BROKEN
def test_at_most_one_row_more_than_keys_is_locked_and_the_batch_refused(keys: int, ambiguous: int, locked: int) -> None:
    ingress = frozen(keys)
    queued = queue(ambiguous, keys)
    assert len(queued) == ambiguous
    terminal = list(WorkItem.objects.filter(state=State.PROCESSED).values_list("id", flat=True))
    assert len(terminal) == TERMINAL
    before = list(WorkItem.objects.order_by("id").values())
    ingress.send(*[change(n) for n in range(keys)])
    with stopped_at(Gate("lock_work_items", after=True), drain_receipts) as router:
        assert len(locked_ids(TABLE, queued)) == locked
        assert locked_ids(TABLE, terminal) == []
    outcome = router.result()
    assert (outcome.events, outcome.deferred) == (0, 1)
    assert list(WorkItem.objects.order_by("id").values()) == before
    assert "queued generations" in Receipt.objects.get(state="pending").last_error


@BROKEN
def test_a_completion_locks_no_more_of_them_and_fails_closed(keys: int, ambiguous: int, locked: int) -> None:
    _, attempts = running(keys)
    queued = queue(ambiguous, keys)
    before = list(WorkItem.objects.order_by("id").values())
    endings = [attempt.ending(State.PROCESSED) for attempt in attempts]
    with stopped_at(Gate("lock_work_items", after=True), lambda: complete(endings)) as worker:
        assert len(locked_ids(TABLE, queued)) == locked
    with pytest.raises(Ambiguous, match="more than one queued generation"):
        worker.result()
    assert list(WorkItem.objects.order_by("id").values()) == before


def test_a_single_successor_of_each_key_is_no_ambiguity() -> None:
    ingress = frozen(3)
    ingress.admit(*[change(n) for n in range(3)])
    outcome = ingress.admit(*[change(n) for n in range(3)])
    assert (outcome.events, outcome.deferred) == (3, 0)


def shout() -> WorkItem:
    """A queued row whose key is that of the only generation in capitals."""
    (active,) = WorkItem.objects.all()
    copy_rows(
        active, 1, WorkId="'alias'", ProjectionKey=f"'{str(active.projection_key).upper()}'", State="'blocked'",
        ProjectionActiveKey="NULL", LaneHolderKey="NULL", ClaimedAt="NULL",
    )  # fmt: skip
    return WorkItem.objects.get(work_id="alias")


LOOSE_KEY = "VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NULL"


def test_a_key_that_only_looks_equal_is_refused() -> None:
    with altered(TABLE, ProjectionKey=LOOSE_KEY):
        ingress = frozen(1)
        shout()
        outcome = ingress.admit(change(0))
        assert (outcome.events, outcome.deferred) == (0, 1)
        assert "treats as equal" in Receipt.objects.get(state="pending").last_error


def test_a_completion_never_activates_a_row_whose_key_only_looks_equal() -> None:
    with altered(TABLE, ProjectionKey=LOOSE_KEY):
        _, (attempt,) = running(1)
        alias = shout()
        with pytest.raises(Ambiguous, match=r"more than one queued generation, or an unexpected one, for .*alias"):
            report(attempt)
        alias.refresh_from_db()
        assert (alias.state, alias.projection_active_key) == ("blocked", None)
        assert WorkItem.objects.get(id=attempt.claimed.item.id).state == "processing"


@pytest.mark.parametrize("reader", ["read_current_generations", "read_successors"])
def test_it_costs_its_keys_and_neither_their_history_nor_the_queues_of_others(reader: str) -> None:
    ingress, _ = running(KEYS)
    ingress.admit(*[change(n) for n in range(KEYS)])
    actives = list(WorkItem.objects.exclude(projection_active_key=None).order_by("id"))
    ended = {"State": "'processed'", "TerminalAt": "UTC_TIMESTAMP(6)", "ProjectionActiveKey": "NULL", "LaneHolderKey": "NULL"}
    for number, active in enumerate(actives[:4]):
        copy_rows(active, 2_000, WorkId=hashed(f"old {number} "), LaneOrdinal="0", **ended)
    queued = WorkItem.objects.filter(state=State.BLOCKED)[0]
    copy_rows(queued, 20_000, WorkId=hashed("other "), ProjectionKey="CONCAT('csp:', SHA2(n, 256))", LaneKey=hashed("lane"))
    refresh_statistics(TABLE)
    keys = [str(active.projection_key) for active in actives]
    with server_work() as work:
        found = getattr(WorkItem.objects, reader)(keys)
    assert len(found) == (2 * KEYS if reader == "read_current_generations" else KEYS)
    assert work.rows_read <= 8 * KEYS, work.counters
