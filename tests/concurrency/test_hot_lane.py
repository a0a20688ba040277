"""One hot lane and 100 cold ones, a held row, 8 workers; the same on every server, without SKIP LOCKED."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from connectors.bench.workbench import texts_sent
from projection.database.catalogue import catalogue
from projection.execution.worker import drain_claims
from projection.inspection.why import why
from projection.models import WorkItem
from projection.states import State
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import Ingress, change, changes, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.gates import _FOLDERS
from tests.support.rivals import PATIENCE_SECONDS, Rival, completion_open
from tests.support.server_work import refresh_statistics, server_work
from tests.support.workers_by_hand import ByHand, let_retries_come_due, report

WORKERS, COLD = 8, 100


def lanes() -> Ingress:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*changes("hot", 20))
    ingress.admit(*[change(n) for n in range(COLD)])
    return ingress


@pytest.mark.usefixtures("sound_database")
def test_nobody_waits_behind_a_held_row_and_nothing_is_claimed_twice() -> None:
    lanes()
    together = threading.Barrier(WORKERS)

    def work() -> int:
        together.wait(PATIENCE_SECONDS)
        return drain_claims(batch=10)

    with recording(atomic=True) as seen:
        (head,) = ByHand("slow").claim(1)
        assert head.claimed.item.source_lane == "contact:hot"
        with completion_open([head]):
            workers = [Rival(work) for _ in range(WORKERS)]
            assert sum(worker.ends_at_once() for worker in workers) == COLD
            assert WorkItem.objects.filter(state="processed").count() == COLD + 1, "ours is not visible to others yet"
        assert drain_claims() == 19
    counted = Counter(work_id for work_id, _, _ in seen.runs)
    assert len(counted) == COLD + 19
    assert set(counted.values()) == {1}
    hot = [ids[0] for (_, _, ids), source in zip(seen.runs, seen.sources, strict=True) if source == "hot"]
    assert hot == list(range(2, 21))


def test_no_statement_of_the_claim_relies_on_skip_locked_or_nowait() -> None:
    for folder in _FOLDERS:
        for name, text in catalogue(folder).items():
            assert "SKIP LOCKED" not in text.upper(), name
            assert "NOWAIT" not in text.upper() or name == "lock_expired_leases", name
            assert "FOR SHARE" not in text.upper(), name


@pytest.mark.usefixtures("database")
def test_a_retrying_head_is_not_overtaken_and_its_lane_s_depth_costs_a_claim_nothing() -> None:
    lanes()
    with recording():
        (head,) = ByHand("one").claim(1)
        report(head, State.RETRY, outcome="retry", error="no", delay_ms=600_000)
        second = WorkItem.objects.get(source_lane="contact:hot", lane_position=2)
        reason = why(second)
        assert "retries at" in reason.sentence
        assert reason.blocking_work_id == head.claimed.item.work_id
        assert reason.until is not None
        costs = []
        for depth in (0, 5_000):
            copy_rows(second, depth, WorkId=hashed("deep"), LanePosition="t.LanePosition + n + 1000")
            refresh_statistics("_System_ConnectorWorkItem")
            with server_work() as work, texts_sent() as texts:
                attempts = ByHand("two").claim(25)
            assert {one.claimed.item.source_lane for one in attempts}.isdisjoint({"contact:hot"})
            assert len(attempts) == 25
            costs.append((texts.count, work.rows_read))
        assert costs[0][0] == costs[1][0]
        assert costs[1][1] <= 1.1 * costs[0][1], costs
        let_retries_come_due()
        again = ByHand("two").claim(100)
        assert [one.claimed.item.id for one in again if one.claimed.item.source_lane == "contact:hot"] == [head.claimed.item.id]
