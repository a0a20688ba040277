"""After a lost worker: what had not started goes back without cost, what had started runs apart until it is known who kills."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from projection.claiming import started
from projection.claiming.claim import claim
from projection.claiming.rescue import IN_COMPANY, REASON, rescue
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.flows import find
from projection.models import WorkFailure, WorkItem
from projection.states import State
from tests.support.deliveries import Ingress, change, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.workers_by_hand import ByHand, item_of, let_leases_run_out, let_retries_come_due, report

pytestmark = pytest.mark.usefixtures("sound_database")


def per_event(*contacts: int, attempts: int = 3) -> Ingress:
    ingress = open_ingress()
    ingress.route(mode="per_event", retry=RetryPolicy(attempts=attempts))
    ingress.admit(*[change(contact) for contact in contacts])
    return ingress


def be_slow() -> None:
    """The flow of the tests was slow: its items count as started when they start."""
    (name,) = {f"{item.companion_pack}.{item.companion_flow}" for item in WorkItem.objects.all()}
    flow = find(name)
    assert flow is not None
    started.took(flow, started.SLOW_SECONDS)


def lose_the_worker() -> None:
    let_leases_run_out()
    rescue()


def rows() -> list[tuple[str, int, int, str]]:
    """(state, attempts, workers lost, queue class), by id."""
    return list(WorkItem.objects.order_by("id").values_list("state", "attempts", "workers_lost", "queue_class"))


def test_what_had_not_started_is_given_back_without_cost_and_what_had_started_runs_apart() -> None:
    per_event(1, 2, 3)
    with recording():
        be_slow()
        first, *_ = ByHand().claim()
        started.note(*first.lease)
        lose_the_worker()
    assert rows() == [("retry", 0, 1, "default!"), ("retry", 0, 0, "default"), ("retry", 0, 0, "default")]
    failure = WorkFailure.objects.get()
    assert (failure.work_item_id, failure.outcome, failure.error) == (first.claimed.item.id, "rescued", IN_COMPANY)


def test_a_suspect_is_claimed_first_and_alone_by_a_worker_that_runs_nothing_else() -> None:
    per_event(1, 2, 3)
    with recording() as seen:
        ByHand().claim()
        lose_the_worker()
        assert [row[1:] for row in rows()] == [(0, 1, "default!")] * 3, "all of a quick flow had started with their claim"
        refused = claim(100, owner="busy", lease_seconds=60, is_idle=False)
        assert (refused.ids, refused.needs_idle) == ([], True)
        batch = claim(100, owner="idle", lease_seconds=60)
        assert (len(batch.ids), batch.is_apart) == (1, True)
        WorkItem.objects.filter(id__in=batch.ids).update(state="retry", lease_token=None, attempts=0)
        drain_claims()
        assert sorted(seen.sources) == ["1", "2", "3"]
    assert {row[:2] for row in rows()} == {("processed", 1)}


def test_a_busy_worker_takes_other_work_while_no_suspect_may_start() -> None:
    per_event(1, 2)
    with recording():
        ByHand().claim()
        lose_the_worker()
        WorkItem.objects.filter(workers_lost=1).exclude(id=WorkItem.objects.earliest("id").id).update(
            workers_lost=0, queue_class="default"
        )
        WorkItem.objects.filter(workers_lost=1).update(run_after="2100-01-01T00:00:00Z")
        assert len(claim(100, owner="busy", lease_seconds=60, is_idle=False).ids) == 1


def test_the_poison_dies_after_its_attempts_and_waits_by_its_policy_once_it_is_proven() -> None:
    per_event(1, 2)
    with recording():
        ByHand().claim()
        lose_the_worker()
        for number in (1, 2, 3):
            let_retries_come_due()
            (attempt,) = ByHand(f"worker-{number}").claim()
            WorkItem.objects.exclude(id=attempt.claimed.item.id).update(run_after="2100-01-01T00:00:00Z")
            assert attempt.claimed.item.attempts == number
            lose_the_worker()
            if number == 2:
                assert item_of(attempt).run_after > item_of(attempt).claimed_at, "two workers prove it: it waits by its policy"
                assert not claim(100, owner="soon", lease_seconds=60).ids
    item = item_of(attempt)
    assert (item.state, item.attempts, item.workers_lost) == ("dead", 3, 4)
    assert str(item.last_error).startswith(REASON)


def test_a_suspect_whose_flow_fails_by_itself_runs_among_others_again() -> None:
    per_event(1, 2)
    with recording():
        ByHand().claim()
        lose_the_worker()
        attempt = ByHand().claim_one()
        report(attempt, State.RETRY, outcome="retry", error="no", delay_ms=1)
        item = item_of(attempt)
        assert (item.workers_lost, item.queue_class, item.attempts) == (0, "default", 1)


@pytest.mark.parametrize("queue_class", ["default", "bulk~42", "bulk!~42", "x" * 32])
def test_a_suspect_of_any_queue_class_runs_apart(queue_class: str) -> None:
    per_event(1, 2)
    with recording():
        ByHand().claim()
        WorkItem.objects.update(queue_class=queue_class)
        lose_the_worker()
        assert len(claim(100, owner="idle", lease_seconds=60).ids) == 1
    assert states(1) != states(2)


def test_the_leases_of_a_lost_worker_are_ended_together() -> None:
    """Else the last of several would look as if it had run alone."""
    per_event(1, 2)
    with recording():
        first, _ = ByHand().claim()
        let_leases_run_out()
        WorkItem.objects.filter(id=first.claimed.item.id).update(lease_expires_at="2100-01-01T00:00:00Z")
        assert rescue() == 0
        let_leases_run_out()
        assert rescue() == 2
    assert [row[1:3] for row in rows()] == [(0, 1), (0, 1)]


def test_a_start_that_cannot_be_written_down_does_not_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    true, refused = started.note, []

    def refuse_once(item_id: int, token: str) -> None:
        if not refused:
            refused.append(item_id)
            raise OperationalError(1205, "Lock wait timeout exceeded")
        true(item_id, token)

    per_event(1)
    monkeypatch.setattr(started, "note", refuse_once)
    with recording() as seen:
        be_slow()
        drain_claims()
        assert seen.sources == ["1"]
    assert refused
    assert rows()[0][:2] == ("processed", 1), "what was not started was handed back"
