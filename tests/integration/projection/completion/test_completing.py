"""Complete, retry, dead-letter, rescue: the end of an attempt is the lease holder's alone, and the next one follows from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from projection.claiming.rescue import REASON, rescue
from projection.completion.complete import complete
from projection.database import clock
from projection.execution.heartbeat import Heartbeat
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.models import WorkFailure, WorkItem
from projection.refusals import Ambiguous
from projection.replay.cancel import retry_now
from projection.states import State
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.workers_by_hand import ByHand, item_of, let_leases_run_out, let_retries_come_due, report

pytestmark = pytest.mark.usefixtures("sound_database")

ENDS: list[dict[str, Any]] = [
    {"state": State.PROCESSED},
    {"state": State.SKIPPED, "error": "gone"},
    {"state": State.DEAD, "outcome": "dead", "error": "bad"},
]
RETRY: dict[str, Any] = {"state": State.RETRY, "outcome": "retry", "error": "no", "delay_ms": 3_600_000}


def projection(**options: Any) -> Ingress:
    ingress = open_ingress()
    ingress.route(**options)
    return ingress


def per_event(**options: Any) -> Ingress:
    return projection(mode="per_event", **options)


def rows(**wanted: Any) -> list[dict[str, Any]]:
    return list(WorkItem.objects.filter(**wanted).order_by("id").values())


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end["state"])
def test_a_terminal_end_gives_up_every_key_and_hands_the_active_one_to_the_successor(end: dict[str, Any]) -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording():
        attempt = ByHand().claim_one()
        ingress.admit(*changes(7, 2))
        before, successor = generations(7)
        assert (before.state, successor.state, successor.projection_active_key) == ("processing", "blocked", None)
        ended = report(attempt, **end)
    assert (ended.activated, list(ended.lost)) == (1, [])
    before, successor = generations(7)
    assert (before.state, before.projection_active_key, before.lane_holder_key, before.lease_token) == (
        end["state"],
        None,
        None,
        None,
    )
    assert before.terminal_at is not None
    assert (successor.state, successor.projection_active_key) == ("pending", successor.projection_key)
    assert before.work_id != successor.work_id
    assert successor.lane_position == 2


@pytest.mark.parametrize("count_back", [0, 1], ids=["counted", "handed back"])
def test_a_retry_keeps_the_generation_its_lane_and_its_queued_successor(count_back: int) -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording():
        attempt = ByHand().claim_one()
        ingress.admit(change(7))
        (_, queued) = rows()
        ended = report(attempt, **RETRY, give_back=count_back)
        assert (ended.activated, ended.unblocked) == (0, 0)
        again, successor = rows()
        assert successor == queued
        assert (again["state"], again["attempts"], again["projection_active_key"]) == (
            "retry",
            1 - count_back,
            again["projection_key"],
        )
        assert again["lane_holder_key"] == again["lane_key"]
        assert timedelta(minutes=59) < again["run_after"] - clock.now() <= timedelta(hours=1)
        assert drain_claims() == 0
        assert retry_now(again["work_id"], actor="me")
        assert not retry_now(again["work_id"], actor="me")
        assert not retry_now("é", actor="me")
        assert drain_claims() == 2
    assert states(7) == ["processed", "processed"]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end["state"])
def test_a_terminal_end_moves_its_lane_on(end: dict[str, Any]) -> None:
    ingress = per_event()
    ingress.admit(*changes(7, 3))
    with recording():
        ended = report(ByHand().claim_one(), **end)
    assert ended.unblocked == 1
    assert states(7) == [end["state"], "pending", "blocked"]


def test_a_retry_unblocks_nobody() -> None:
    ingress = per_event()
    ingress.admit(*changes(7, 2))
    with recording():
        report(ByHand().claim_one(), **RETRY)
    assert states(7) == ["retry", "blocked"]


def test_a_successor_that_takes_the_lane_keeps_later_items_blocked() -> None:
    ingress = projection(on=("changed",))
    ingress.route("single", mode="per_event", on=("single",))
    with recording():
        ingress.admit(change(7))
        attempt = ByHand().claim_one()
        ingress.admit(change(7))
        ingress.admit(change(7, kind="single"))
        assert states(7) == ["processing", "blocked", "blocked"]
        report(attempt)
        assert states(7) == ["processed", "pending", "blocked"]
        report(ByHand().claim_one())
        assert states(7) == ["processed", "processed", "pending"]


def test_an_item_ahead_of_the_successor_is_unblocked_with_it() -> None:
    ingress = projection(on=("changed",))
    ingress.route("single", mode="per_event", on=("single",))
    with recording() as seen:
        ingress.admit(change(7))
        attempt = ByHand().claim_one()
        ingress.admit(change(7, kind="single"))
        ingress.admit(change(7))
        report(attempt)
        assert states(7) == ["processed", "pending", "pending"]
        drain_claims()
    assert seen.inputs == [2, 3]


def test_a_settling_successor_does_not_block_the_lane() -> None:
    ingress = projection(on=("changed",), settle=3600.0)
    ingress.route("single", mode="per_event", on=("single",))
    with recording():
        ingress.admit(change(7))
        WorkItem.objects.update(run_after=clock.now())
        attempt = ByHand().claim_one()
        ingress.admit(change(7))
        ingress.admit(change(7, kind="single"))
        report(attempt)
        assert states(7) == ["processed", "pending", "pending"]
        assert drain_claims() == 1


def test_a_batch_of_ends_is_written_at_once_and_each_for_itself() -> None:
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(5)])
    with recording():
        attempts = ByHand().claim()
        ends = [*ENDS, RETRY, {"state": State.RETRY, "give_back": 1}]
        ended = complete([attempt.ending(**end) for attempt, end in zip(attempts, ends, strict=True)])
    assert len(ended.written) == 5
    assert [item.state for item in WorkItem.objects.order_by("id")] == ["processed", "skipped", "dead", "retry", "retry"]
    assert [item.last_error for item in WorkItem.objects.order_by("id")] == [None, "gone", "bad", "no", None]
    failures = WorkFailure.objects.order_by("id").values_list("work_id", "attempt", "outcome", "error", "delay_ms", "lease_owner")
    assert list(failures) == [
        (attempts[2].claimed.item.work_id, 1, "dead", "bad", None, "worker-a"),
        (attempts[3].claimed.item.work_id, 1, "retry", "no", 3_600_000, "worker-a"),
    ]


def test_two_ambiguous_successors_fail_closed_and_the_attempt_stays_open() -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording():
        attempt = ByHand().claim_one()
        ingress.admit(change(7))
        successor = generations(7)[1]
        copy = WorkItem.objects.get(id=successor.id)
        copy.pk, copy.work_id = None, "csp:" + "f" * 64
        copy.save()
        before = rows()
        with pytest.raises(Ambiguous):
            report(attempt)
        assert rows() == before
        WorkItem.objects.filter(id=copy.pk).delete()
        assert report(attempt).activated == 1


REPORTS = [*ENDS, RETRY, {"state": State.RETRY, "give_back": 1}]


@pytest.mark.parametrize("end", REPORTS, ids=["success", "skip", "dead letter", "retry", "hand-back"])
@pytest.mark.parametrize("rival", ["waits", "runs", "ended"])
def test_a_zombie_changes_nothing(end: dict[str, Any], rival: str) -> None:
    """A's lease ran out, B has the item; whatever A reports afterwards writes nothing."""
    ingress = projection()
    ingress.admit(change(7))
    with recording():
        zombie = ByHand("worker-a").claim_one()
        ingress.admit(change(7))
        let_leases_run_out()
        assert rescue() == 1
        if rival != "waits":
            second = ByHand("worker-b").claim_one()
            assert second.claimed.item.attempts == 2
            if rival == "ended":
                report(second)
        before, failures = rows(), list(WorkFailure.objects.values())
        ended = report(zombie, **end)
        assert (list(ended.written), list(ended.lost)) == ([], [zombie.claimed.item.work_id])
        assert WorkItem.objects.extend_leases([zombie.claimed.item.id], zombie.token, 60) == 0
        assert (rows(), list(WorkFailure.objects.values())) == (before, failures)
    assert [row.outcome for row in WorkFailure.objects.all()] == ["rescued"]


def test_an_end_reported_twice_counts_once() -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording():
        attempt = ByHand().claim_one()
        assert not report(attempt).lost
        assert report(attempt).lost
        assert report(attempt, **RETRY).lost
    assert states(7) == ["processed"]


def test_a_lease_that_ran_out_goes_back_to_its_next_attempt_at_once() -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording():
        attempt = ByHand().claim_one()
        assert rescue() == 0, "its lease lasts"
        let_leases_run_out()
        assert (rescue(), rescue()) == (1, 0)
        item = item_of(attempt)
        assert (item.state, item.attempts, item.lease_token, item.last_error) == ("retry", 1, None, REASON)
        assert item.lane_holder_key == item.lane_key
        assert ByHand("worker-b").claim_one().claimed.item.attempts == 2
    failure = WorkFailure.objects.get()
    assert (failure.attempt, failure.outcome, failure.error) == (1, "rescued", REASON)


def test_a_job_that_kills_its_process_runs_out_of_budget() -> None:
    ingress = projection(retry=RetryPolicy(attempts=2))
    ingress.admit(change(7))
    with recording():
        ByHand().claim_one()
        ingress.admit(change(7))
        let_leases_run_out()
        rescue()
        ByHand().claim_one()
        let_leases_run_out()
        assert rescue() == 1
    assert states(7) == ["dead", "pending"]
    assert list(WorkFailure.objects.order_by("id").values_list("attempt", "outcome")) == [(1, "rescued"), (2, "dead")]
    assert generations(7)[0].last_error == REASON


def test_several_leases_are_rescued_together_and_their_lanes_move_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.claiming.rescue.BATCH", 3)
    ingress = per_event(retry=RetryPolicy(attempts=1))
    ingress.admit(*[change(n) for n in range(5)], *[change(n) for n in range(5)])
    with recording():
        for number in range(5):
            ByHand(f"worker-{number}").claim(limit=1)
        let_leases_run_out()
        assert (rescue(), rescue()) == (5, 0)
    assert {tuple(states(n)) for n in range(5)} == {("dead", "pending")}


def test_retrying_rows_and_queued_siblings_never_collide() -> None:
    """Inputs came while it ran; it ends by an error, by a stale lease and by "retry now", for two projections at once."""
    ingress = projection(retry=RetryPolicy(base=0))
    ingress.admit(change(7), change(8))
    with recording() as seen:
        first = ByHand().claim()
        ingress.admit(change(7), change(8))
        complete([attempt.ending(**RETRY) for attempt in first])
        for item in WorkItem.objects.filter(state="retry"):
            assert retry_now(item.work_id, actor="me")
        assert len(ByHand().claim()) == 2
        let_leases_run_out()
        assert rescue() == 2
        seen.raises += [ValueError("no"), ValueError("no")]
        drain_claims()
        assert sorted(WorkItem.objects.values_list("state", "attempts")) == [("blocked", 0)] * 2 + [("retry", 2)] * 2
        let_retries_come_due()
        drain_claims()
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


@pytest.mark.parametrize(
    ("time_out", "extended"),
    [
        pytest.param(30.0, [True, True, False], id="runs and waits are extended, what has ended is not"),
        pytest.param(-1.0, [False, False, False], id="past its time-out: neither it nor what waits behind it"),
    ],
)
def test_a_heartbeat_extends_leases_until_a_flow_s_time_out(time_out: float, extended: list[bool]) -> None:
    ingress = per_event()
    ingress.admit(change(7), change(8), change(9))
    with recording():
        attempts = ByHand().claim()
    waiting, runs, ended = (attempt.claimed.item.id for attempt in attempts)
    soon = clock.now() + timedelta(seconds=5)
    WorkItem.objects.update(lease_expires_at=soon)
    heartbeat = Heartbeat("worker", lease_seconds=60)
    heartbeat.keep([waiting, runs, ended], attempts[0].token)
    heartbeat.started((runs, attempts[0].token), timeout=time_out)
    heartbeat.drop([(ended, attempts[0].token)])
    with heartbeat:
        pass
    assert [item.lease_expires_at != soon for item in WorkItem.objects.order_by("id")] == extended


def test_a_heartbeat_that_was_faster_than_the_rescue_keeps_the_item(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    with recording():
        attempt = ByHand().claim_one()
    let_leases_run_out()
    read = WorkItem.objects.read_expired_leases

    def extend_meanwhile() -> list[int]:
        found = read()
        assert WorkItem.objects.extend_leases(found, attempt.token, 60) == 1
        return found

    monkeypatch.setattr(WorkItem.objects, "read_expired_leases", extend_meanwhile)
    assert rescue() == 0
    assert states(7) == ["processing"]
