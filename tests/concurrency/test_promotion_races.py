"""Races beyond `test_admission_beside_completion` and `test_routers_and_receive`: a raced key, many rounds, prune beside replay.

Further races: a settled item beside a pending one and two due items of one lane in `test_settling`; events that arrive
while a replay is unclaimed, and repair behind a replay, in `test_replaying`; a copy of an unrouted event in `test_repair`.
"""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db.models import F

from connectors.routing.router import drain_receipts
from projection.database import transactions
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter, Generation
from projection.models import Event, WorkItem
from projection.refusals import Refused
from projection.replay.decision import Replayed
from projection.replay.replay import replay
from projection.retention.cut_offs import CutOffs
from projection.retention.prune import prune
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, ordinals, states
from tests.support.flows_of_tests import recording
from tests.support.gates import COMMIT, Gate, stopped_at
from tests.support.rivals import PATIENCE_SECONDS, Rival
from tests.support.rows import work_row
from tests.support.scale import size
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")

ROUNDS = size(50, 1000)


@pytest.fixture
def ingress() -> Ingress:
    found = open_ingress()
    found.route()
    return found


def test_a_raced_active_key_rolls_the_producer_back_whole_and_its_retry_keeps_the_lower_bound(
    ingress: Ingress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who does not know our namespace lock (an old binary) activates a generation of the key while we insert ours."""
    retried: list[int] = []
    monkeypatch.setattr(transactions, "log_event", lambda event, **facts: retried.append(facts["error_code"]))
    with recording() as seen:
        ingress.admit(change(7))
        drain_claims()
        ingress.admit(change(7))
        WorkItem.objects.filter(state="pending").delete()
        ingress.send(change(7), change(8))
        with stopped_at(Gate("insert_work_items"), drain_receipts) as producer:
            assert ordinals(7) == [1, 2], "its events are not visible"
            promoted = work_row(Event.objects.get(enqueue_ordinal=2))
        outcome = producer.result()
        assert (outcome.events, outcome.duplicates, outcome.deferred) == (2, 0, 0)
        assert retried == [1062], "the whole batch once more, not receipt by receipt"
        assert sorted(Event.objects.values_list("enqueue_ordinal", flat=True)) == [1, 2, 3, 4], "no ordinal was used twice or lost"
        assert [(item.id, item.state, item.lane_ordinal) for item in generations(7)[1:]] == [(promoted.id, "pending", 3)]
        drain_claims()
    assert [ids for _, _, ids in seen.runs] == [[1], [2, 3], [4]]


@pytest.mark.scale
@pytest.mark.timeout(3000)
def test_rounds_of_enqueue_beside_completion_lose_and_strand_no_successor(ingress: Ingress) -> None:
    """1,000 rounds at full scale; half of them with a successor already queued."""
    with recording() as seen:
        for number in range(ROUNDS):
            ingress.admit(change(number))
            attempt = ByHand().claim_one()
            seen.runs.append((attempt.claimed.item.work_id, 1, [one.ordinal for one in attempt.inputs]))
            if number % 2:
                ingress.admit(change(number))
            ingress.send(*changes(number, 2))
            both = threading.Barrier(2)
            rivals: list[Rival[object]] = [
                Rival(lambda gate=both: (gate.wait(PATIENCE_SECONDS), drain_receipts())),
                Rival(lambda gate=both, one=attempt: (gate.wait(PATIENCE_SECONDS), report(one))),
            ]
            for rival in rivals:
                rival.result()
            assert states(number) == ["processed", "pending"]
            assert drain_claims() == 1
    assert seen.inputs == list(range(1, Event.objects.count() + 1))


def test_an_atomic_flow_keeps_neither_heartbeat_nor_siblings_nor_receive_waiting() -> None:
    """As long as it likes: it stands still until the test lets it go on (test_admission_beside_completion has the admission alone)."""
    ingress = open_ingress()
    ingress.route(on=("changed",))
    ingress.route("sibling", mode="per_event", kind="deal.action", on=("action",), flow="test.sibling")
    ingress.admit(change(7), change(8, kind="action"))
    running, finish = threading.Event(), threading.Event()

    def dawdle(_: Generation) -> None:
        running.set()
        assert finish.wait(PATIENCE_SECONDS)

    with recording("test.sibling"):
        sibling = ByHand("other").claim_one()
        with recording(atomic=True) as slow:
            slow.acts.append(dawdle)
            worker = Rival(drain_claims)
            assert running.wait(PATIENCE_SECONDS)
            (item,) = generations(7)
            assert item.state == "processing"
            assert WorkItem.objects.extend_leases([item.id], str(item.lease_token), 600) == 1
            assert report(sibling).lost == []
            assert ingress.admit(change(7)).events == 1
            finish.set()
            worker.result()
    assert (states(7), states(8)) == (["processed", "processed"], ["processed"])
    assert slow.inputs == [1, 3]


def dead_and_old(ingress: Ingress) -> str:
    """A dead generation past its term, with a newer one behind it."""
    with recording() as seen:
        seen.raises.append(DeadLetter("bad"))
        ingress.admit(change(7))
        drain_claims()
        ingress.admit(change(7))
        drain_claims()
    WorkItem.objects.update(terminal_at=F("terminal_at") - timedelta(days=400))
    return generations(7)[0].work_id


def test_a_prune_that_waits_for_a_replay_keeps_what_is_replayed(ingress: Ingress) -> None:
    work_id = dead_and_old(ingress)
    cut_offs = CutOffs.of(30, 90)
    with stopped_at(Gate(COMMIT), lambda: replay(work_id, actor="me", reason="fixed")) as replaying:
        pruning = Rival(lambda: prune(cut_offs))
        pruning.waits()
    assert isinstance(replaying.result(), Replayed)
    pruning.result()
    assert states(7) == ["dead", "processed", "pending"]
    with recording() as seen:
        drain_claims()
    assert seen.inputs == [1]


def test_a_replay_that_waits_for_a_prune_finds_nothing_to_replay(ingress: Ingress) -> None:
    work_id = dead_and_old(ingress)
    cut_offs = CutOffs.of(30, 90)
    with stopped_at(Gate(COMMIT), lambda: prune(cut_offs)) as pruning:
        replaying = Rival(lambda: replay(work_id, actor="me", reason="fixed"))
        replaying.waits()
    assert pruning.result().work_items == 1
    result = replaying.result()
    assert isinstance(result, Refused)
    assert result.code == "not_found"
    assert states(7) == ["processed"]
