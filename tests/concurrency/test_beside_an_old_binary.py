"""Rolling upgrade: an event-owned row has one winner, our worker or an old binary, whichever locks the event first; and it runs once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction

from projection.admission import activation, older_workers
from projection.database import clock
from projection.execution.worker import drain_claims
from projection.integrity.invariants import audit
from projection.models import Event, ProjectionProtocol, WorkFailure, WorkItem
from projection.replay.decision import Replayed
from projection.replay.replay import replay
from projection.states import State
from tests.support.deliveries import Ingress, change, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.rivals import Rival
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")

LEASE = timedelta(minutes=1)


@pytest.fixture
def ingress(sound_database: None) -> Ingress:
    """Not activated: events are inserted event-owned."""
    made = open_ingress()
    ProjectionProtocol.objects.all().delete()
    activation.forget()
    return made


class OldBinary:
    """Claims and ends events as it always did: by compare-and-swap on the row that it owns."""

    def lease(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE `_System_ConnectorEvent` SET Status = 'processing', LeaseToken = 'old', Attempts = Attempts + 1, "
                "LeaseExpiresAt = UTC_TIMESTAMP(6) + INTERVAL 60 SECOND "
                "WHERE ExecutorOwner = 'event' AND Status = 'pending' AND LeaseToken IS NULL"
            )
            return int(cursor.rowcount)

    def end(self, status: str = "processed", error: str | None = None) -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE `_System_ConnectorEvent` SET Status = %s, TerminalAt = UTC_TIMESTAMP(6), LastError = %s, LeaseToken = NULL, "
                "LeaseExpiresAt = NULL WHERE ExecutorOwner = 'event' AND LeaseToken = 'old'",
                [status, error],
            )
            return int(cursor.rowcount)


old_binary = OldBinary()


def per_event(ingress: Ingress, count: int = 1) -> None:
    ingress.route(mode="per_event")
    ingress.admit(*[change(n) for n in range(count)])


def test_a_claim_that_waits_for_an_old_binary_s_lease_takes_nothing(ingress: Ingress) -> None:
    per_event(ingress)
    with recording() as seen:
        with transaction.atomic():
            assert old_binary.lease() == 1
            rival = Rival(drain_claims)
            rival.waits()
        assert rival.result() == 0
        assert old_binary.end() == 1
        assert drain_claims() == 0
    assert seen.runs == []
    item = WorkItem.objects.get()
    assert (item.state, item.attempts, item.claimed_at) == ("processed", 0, None)


def test_an_old_binary_that_waits_for_our_claim_finds_the_fence(ingress: Ingress) -> None:
    per_event(ingress)
    with recording() as seen:
        with transaction.atomic():
            assert older_workers.fence([Event.objects.get().id]) == {Event.objects.get().id}
            rival = Rival(old_binary.lease)
            rival.waits()
        assert rival.result() == 0
        assert drain_claims() == 1
        assert old_binary.end() == 0
    assert len(seen.runs) == 1


def test_a_stale_lease_is_taken_over_and_its_late_result_counts_for_nothing(ingress: Ingress) -> None:
    per_event(ingress)
    assert old_binary.lease() == 1
    with recording() as seen:
        assert drain_claims() == 0
        Event.objects.update(lease_expires_at=clock.now() - LEASE)
        assert drain_claims() == 1
        assert old_binary.end("dead", "too late") == 0
    assert len(seen.runs) == 1
    assert states(0) == ["processed"]


@pytest.mark.parametrize(
    ("status", "error"), [("processed", None), ("skipped", "gone"), ("dead", "no such contact"), ("cancelled", "by hand")]
)
def test_what_an_old_binary_ended_runs_no_second_time_and_makes_room_in_the_claim(
    ingress: Ingress, status: str, error: str | None
) -> None:
    per_event(ingress)
    assert old_binary.lease() == 1
    ingress.admit(change(0), change(1))  # behind it in its lane, and another lane
    assert old_binary.end(status, error) == 1
    with recording() as seen:
        assert len(ByHand().claim(1)) == 1, "the ended one uses up no part of the limit"
        assert drain_claims() == 1
    assert seen.sources == ["0"] or seen.sources == ["1"]
    first = WorkItem.objects.order_by("id")[0]
    assert (first.state, first.attempts, first.last_error, first.terminal_at is None) == (status, 0, error, False)
    assert WorkFailure.objects.count() == 0


@pytest.mark.parametrize(
    ("error", "text"),
    [(None, "an older version of Headrace ended it as 'expired'"), ("x", "an older version of Headrace ended it as 'expired': x")],
)
def test_an_end_that_nobody_knows_is_a_dead_letter_and_strands_no_lane(ingress: Ingress, error: str | None, text: str) -> None:
    per_event(ingress)
    assert old_binary.lease() == 1
    ingress.admit(change(0))  # behind it in its lane
    assert old_binary.end("expired", error) == 1
    with recording() as seen:
        assert drain_claims() == 1
    assert len(seen.runs) == 1
    assert states(0) == ["dead", "processed"]
    first = WorkItem.objects.order_by("id")[0]
    assert (first.attempts, first.last_error) == (0, text)


def test_before_activation_a_lane_goes_on_when_an_old_binary_has_ended_its_head(ingress: Ingress) -> None:
    ingress.route(on=("changed",))
    ingress.route("single", mode="per_event", kind="deal.action", on=("action",))
    ingress.admit(change(7))
    assert old_binary.lease() == 1
    ingress.admit(change(7, kind="action"))
    with recording() as seen:
        assert drain_claims() == 0, "the lane waits for the old binary"
        assert old_binary.end() == 1
        assert drain_claims() == 1
    assert seen.inputs == [2]
    assert states(7) == ["processed", "processed"]


def test_the_successor_of_a_replay_that_an_old_binary_ended_is_activated_with_its_end(ingress: Ingress) -> None:
    activation.activate("test")
    ingress.route()
    ingress.admit(change(7))
    with recording():
        report(ByHand().claim_one(), State.DEAD, outcome="dead", error="never")
        dead = WorkItem.objects.get()
        ProjectionProtocol.objects.all().delete()
        activation.forget()
        assert isinstance(replay(dead.work_id, actor="test", reason="test"), Replayed)
        assert old_binary.lease() == 1
        ingress.admit(change(7))  # the replay is frozen: a successor
        assert states(7) == ["dead", "pending", "blocked"]
        assert old_binary.end() == 1
        activation.activate("test")
        assert drain_claims() == 1
    assert states(7) == ["dead", "processed", "processed"]


def test_two_workers_copy_a_result_once(ingress: Ingress) -> None:
    per_event(ingress, 3)
    assert old_binary.lease() == 3
    assert old_binary.end() == 3
    events = list(Event.objects.values_list("id", flat=True))
    with transaction.atomic():
        assert older_workers._copy_results(events) == 3
        rival = Rival(lambda: older_workers.copy_results(events))
        rival.waits()
    assert rival.result() == 0
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


def test_an_item_that_was_claimed_before_keeps_its_own_result(ingress: Ingress) -> None:
    per_event(ingress)
    with recording():
        attempt = ByHand().claim_one()
        Event.objects.update(executor_owner="event", status="dead", terminal_at=clock.now())  # somebody wrote what only legacy may
        assert older_workers.copy_results([attempt.claimed.item.event_id]) == 0
        report(attempt)
    assert states(0) == ["processed"]
    assert [one.invariant for one in audit().violations] == ["selected_event"], "somebody did, and it is found"
    Event.objects.update(executor_owner="work_item")
