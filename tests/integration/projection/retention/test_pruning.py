"""Retention: finished history goes from its oldest end, events and work together, and nothing that is still needed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db.models import F

from connectors.models import Receipt
from connectors.retention.prune import retain
from connectors.retention.receipts import prune_receipts
from connectors.routing.sweep import sweep
from projection.database import clock
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.integrity.invariants import audit
from projection.models import Event, WorkFailure, WorkItem
from projection.refusals import Refused
from projection.replay.decision import Replayed
from projection.replay.replay import replay
from projection.retention.cut_offs import CutOffs, Preview, Pruned
from projection.retention.prune import prune
from tests.support import commands
from tests.support.bulk_rows import make_old
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, ordinals
from tests.support.flows_of_tests import recording
from tests.support.rows import event_row, work_row

pytestmark = pytest.mark.usefixtures("database")

DAY = timedelta(days=1)


def age(days: int, **only: object) -> None:
    """Make everything that has ended (or the rows of `only`) look `days` older."""
    WorkItem.objects.filter(**only, terminal_at__isnull=False).update(terminal_at=F("terminal_at") - days * DAY)
    Event.objects.filter(route_id=None).update(created_date=F("created_date") - days * DAY)
    Receipt.objects.update(received_at=F("received_at") - days * DAY)


def cut_offs() -> CutOffs:
    return CutOffs.of(30, 90)


def run_generations(ingress: Ingress, contact: int, counts: list[int], *, die: int | None = None) -> None:
    """One executed generation per count, of so many inputs; number `die` (from 0) is dead-lettered."""
    for number, count in enumerate(counts):
        ingress.admit(*changes(contact, count))
        with recording() as seen:
            seen.raises += [DeadLetter("bad")] if number == die else []
            drain_claims()


def test_a_projection_keeps_its_newest_generation_and_the_inputs_of_what_stays() -> None:
    ingress = open_ingress()
    ingress.route()
    run_generations(ingress, 7, [3, 2, 4])
    age(31)
    expected = Pruned(events=5, work_items=2)
    assert prune(cut_offs(), dry_run=True) == expected
    assert prune(cut_offs()) == expected
    assert prune(cut_offs()) == Pruned()
    assert len(ordinals(7)) == 4
    assert [item.state for item in generations(7)] == ["processed"]
    assert audit().ok
    with recording() as seen:
        ingress.admit(*changes(7, 2))
        drain_claims()
    assert seen.inputs == ordinals(7)[4:]
    assert generations(7)[-1].work_id != generations(7)[0].projection_key


def test_nothing_before_its_term() -> None:
    ingress = open_ingress()
    ingress.route()
    run_generations(ingress, 7, [1, 1, 1])
    age(29)
    assert prune(cut_offs()) == Pruned()


def test_a_young_generation_keeps_all_later_ones() -> None:
    ingress = open_ingress()
    ingress.route()
    run_generations(ingress, 7, [1, 1, 1])
    age(31)
    WorkItem.objects.filter(id=generations(7)[0].id).update(terminal_at=clock.now())
    assert prune(cut_offs()) == Pruned(), "only the oldest end may go"


def test_an_undiscarded_dead_letter_has_its_own_term() -> None:
    ingress = open_ingress()
    ingress.route()
    run_generations(ingress, 7, [1, 1, 1], die=0)
    age(31)
    assert prune(cut_offs()) == Pruned()
    WorkItem.objects.filter(state="dead").update(discarded_at=clock.now())
    assert prune(cut_offs()) == Pruned(events=2, work_items=2)
    assert not WorkFailure.objects.exists()


def test_dead_letters_go_after_their_longer_term() -> None:
    ingress = open_ingress()
    ingress.route()
    run_generations(ingress, 7, [1, 1, 1], die=0)
    age(91)
    assert prune(cut_offs()) == Pruned(events=2, work_items=2)


def test_a_replayed_item_and_its_replay_go_together() -> None:
    ingress = open_ingress()
    ingress.route()
    run_generations(ingress, 7, [2], die=0)
    dead = generations(7)[0]
    assert isinstance(replay(dead.work_id, actor="me", reason="fixed"), Replayed)
    run_generations(ingress, 8, [1])
    run_generations(ingress, 7, [1])
    age(91, state="dead")
    assert prune(cut_offs()) == Pruned(), "its replay is retained"
    again = replay(dead.work_id, actor="me", reason="again")
    assert isinstance(again, Refused)
    assert again.code == "already_replayed"
    age(91, state="processed")
    assert prune(cut_offs()) == Pruned(events=3, work_items=2)
    assert audit().ok


def test_per_event_work_goes_with_its_event() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    run_generations(ingress, 7, [3])
    age(31)
    WorkItem.objects.filter(id=generations(7)[1].id).update(terminal_at=clock.now())
    assert prune(cut_offs()) == Pruned(events=2, work_items=2)
    assert len(ordinals(7)) == 1
    assert audit().ok


def test_receipts_go_once_nothing_of_them_is_kept_and_waiting_ones_never() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    run_generations(ingress, 7, [2])
    ingress.send(change(8))
    age(31)
    before: datetime = cut_offs().before
    assert prune_receipts(before) == 0
    assert retain(dry_run=True).receipts == 1, "of which nothing is kept once its events are gone"
    prune(cut_offs())
    assert prune_receipts(before, preview=Preview()) == 1
    assert prune_receipts(before) == 1
    assert [receipt.state for receipt in Receipt.objects.all()] == ["pending"]


def test_unrouted_facts_go_after_the_ordinary_term() -> None:
    ingress = open_ingress()
    ingress.admit(*changes(7, 2))
    assert prune(cut_offs()) == Pruned()
    age(31)
    assert prune(cut_offs()) == Pruned(events=2, work_items=0)


def test_the_command_prunes() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    run_generations(ingress, 7, [2])
    age(31)
    gone = {"events": 2, "work_items": 2, "receipts": 1, "unverified": 0, "jobs": 0}
    assert commands.run("prune", "--dry-run") == (0, {"dry_run": True, **gone})
    assert commands.run("prune", "--yes") == (0, {"dry_run": False, **gone})
    assert commands.run("prune", "--yes") == (0, {"dry_run": False, **dict.fromkeys(gone, 0)})


def test_rows_from_before_ordinals_go_with_the_generation_that_represents_them() -> None:
    """Ordinals bound nothing there: what goes is what the removed generation represents, by pairwise order."""
    now = clock.now()
    first, own = (event_row(enqueue_ordinal=0, created_date=now - days * DAY) for days in (99, 98))
    late = event_row(created_date=now - 97 * DAY)
    second = event_row(enqueue_ordinal=0, created_date=now - 96 * DAY)
    old = work_row(own, "processed", terminal_at=now - 95 * DAY)
    newest = work_row(second, "processed", terminal_at=now - 94 * DAY)
    expected = Pruned(events=2, work_items=1)
    assert prune(cut_offs(), dry_run=True) == expected
    assert prune(cut_offs()) == expected
    assert prune(cut_offs()) == Pruned()
    assert set(Event.objects.values_list("id", flat=True)) == {late.id, second.id}, f"of {first.id}, {own.id} too"
    assert list(WorkItem.objects.values_list("id", flat=True)) == [newest.id], f"not {old.id}"


@pytest.mark.parametrize("mode", ["projection", "per_event"])
def test_what_is_replayed_just_now_is_kept_whole(mode: str) -> None:
    ingress = open_ingress()
    ingress.route(mode=mode)
    run_generations(ingress, 7, [2, 1], die=0)
    age(400)
    (dead, *_) = (item for item in generations(7) if item.state == "dead")
    assert isinstance(replay(dead.work_id, actor="me", reason="fixed"), Replayed)
    kept = set(WorkItem.objects.filter(work_id=dead.work_id).values_list("id", flat=True))
    assert prune(cut_offs(), dry_run=True) == prune(cut_offs())
    assert kept <= set(WorkItem.objects.values_list("id", flat=True))
    with recording() as seen:
        drain_claims()
    assert seen.inputs == ([1, 2] if mode == "projection" else [1])


def test_a_dry_run_counts_unrouted_facts_and_keeps_them() -> None:
    ingress = open_ingress()
    ingress.admit(*changes(7, 2))
    age(31)
    assert prune(cut_offs(), dry_run=True) == Pruned(events=2)
    assert Event.objects.count() == 2


def test_a_row_from_before_ordinals_that_is_not_over_keeps_nothing_older() -> None:
    now = clock.now()
    old, own = (event_row(created_date=now - days * DAY) for days in (99, 98))
    late = event_row(enqueue_ordinal=0, created_date=now - 2 * DAY)
    work_row(old, "processed", terminal_at=now - 95 * DAY)
    work_row(own, "processed", terminal_at=now - 94 * DAY)
    work_row(late, "processed", terminal_at=now - DAY)
    assert prune(cut_offs(), dry_run=True) == Pruned(events=2, work_items=2)
    assert prune(cut_offs()) == Pruned(events=2, work_items=2)
    assert [item.event_id for item in WorkItem.objects.all()] == [late.id]


@pytest.mark.parametrize("stop_after", [0, 1, 2])
def test_what_a_swept_copy_has_done_is_done_once_however_early_a_run_ends(stop_after: int) -> None:
    """The unrouted fact goes before its copy: with the copy gone, a sweep would route the fact again."""
    ingress = open_ingress()
    ingress.admit(change(7))
    ingress.route(mode="per_event")
    assert sweep().copies == 1
    with recording() as seen:
        drain_claims()
        make_old()
        asked = iter(range(10))
        prune(cut_offs(), stop=lambda: next(asked) >= stop_after)
        assert sweep().copies == 0
        drain_claims()
        prune(cut_offs())
        assert sweep().copies == 0
    assert len(seen.runs) == 1
    assert not Event.objects.exists()
