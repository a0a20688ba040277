"""B3: a broken projection never makes admission lock more than K + 1 of its rows, and never passes: it is refused."""

from __future__ import annotations

import itertools

import pytest

from connectors.models import Receipt
from connectors.router import drain_receipts
from projection.models import WorkItem
from projection.states import State
from tests.altered_columns import altered
from tests.bulk_rows import copy_rows, hashed
from tests.deliveries import Ingress, change, open_ingress
from tests.flows_of_tests import recording
from tests.gates import Gate, stopped_at
from tests.server_work import locked_ids
from tests.workers_by_hand import ByHand

pytestmark = pytest.mark.usefixtures("database")

TABLE = "_System_ConnectorWorkItem"
TERMINAL = 500


def frozen(keys: int) -> Ingress:
    """As many projections whose generation is being executed."""
    ingress = open_ingress()
    ingress.route()
    ingress.admit(*[change(n) for n in range(keys)])
    with recording():
        assert len(ByHand().claim(keys)) == keys
    return ingress


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


@pytest.mark.parametrize(("keys", "ambiguous", "locked"), [(1, 33, 2), (3, 2, 2), (3, 4, 4), (128, 160, 129)])
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
    report = router.result()
    assert (report.events, report.deferred) == (0, 1)
    assert list(WorkItem.objects.order_by("id").values()) == before
    assert "queued generations" in Receipt.objects.get(state="pending").last_error


def test_a_single_successor_of_each_key_is_no_ambiguity() -> None:
    ingress = frozen(3)
    ingress.admit(*[change(n) for n in range(3)])
    report = ingress.admit(*[change(n) for n in range(3)])
    assert (report.events, report.deferred) == (3, 0)


def test_a_key_that_only_looks_equal_is_refused() -> None:
    with altered(TABLE, ProjectionKey="VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NULL"):
        ingress = frozen(1)
        (active,) = WorkItem.objects.all()
        shouted = str(active.projection_key).upper()
        copy_rows(
            active, 1, WorkId="'alias'", ProjectionKey=f"'{shouted}'", State="'blocked'", ProjectionActiveKey="NULL",
            LaneHolderKey="NULL", ClaimedAt="NULL",
        )  # fmt: skip
        report = ingress.admit(change(0))
        assert (report.events, report.deferred) == (0, 1)
        assert "takes for another" in Receipt.objects.get(state="pending").last_error
