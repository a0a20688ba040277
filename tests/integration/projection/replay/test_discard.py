"""Discard, restore and retry now: each a guarded change of rows."""

from __future__ import annotations

import pytest

from projection.database.clock import now
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.cancel import retry_now
from projection.replay.discard import Discarded, Restored, discard, preview_restores, restore
from projection.retention.erasure import ERASED_TEXT, erase_facts
from tests.support.rows import LONG_AGO, PAGES, event_row, replay_row, work_row

pytestmark = pytest.mark.usefixtures("database")


def refusal(work_id: str) -> str:
    outcome = discard(work_id, actor="ann", reason="r")
    assert isinstance(outcome, Refused)
    assert outcome.id == work_id
    return outcome.code


def test_a_dead_item_is_set_aside_and_stays_dead() -> None:
    item = work_row(event_row(), "dead")
    assert discard(item.work_id, actor="ann", reason="vendor gone \x00") == Discarded(item.work_id)
    item.refresh_from_db()
    assert (item.state, item.discarded_by, item.discard_reason) == ("dead", "ann", "vendor gone \\x00")
    assert item.discarded_at is not None
    assert abs((now() - item.discarded_at).total_seconds()) < 60


@pytest.mark.parametrize("state", ["pending", "blocked", "processing", "retry", "processed", "skipped", "cancelled"])
def test_only_dead_work_can_be_discarded(state: str) -> None:
    item = work_row(event_row(PAGES), state)
    assert refusal(item.work_id) == "not_dead"
    item.refresh_from_db()
    assert item.discarded_at is None


def test_a_second_discard_changes_nothing() -> None:
    item = work_row(event_row(), "dead", discarded_at=LONG_AGO, discarded_by="bob", discard_reason="first")
    assert refusal(item.work_id) == "already_discarded"
    item.refresh_from_db()
    assert (item.discarded_by, item.discarded_at) == ("bob", LONG_AGO)


def test_what_does_not_exist_is_refused() -> None:
    assert refusal("csp:unknown") == "not_found"
    assert refusal("ü") == "not_found"


@pytest.mark.parametrize("state", ["pending", "processing", "retry"])
def test_an_item_whose_replay_runs_is_refused(state: str) -> None:
    dead = work_row(event_row(), "dead")
    replay_row(dead, state)
    assert refusal(dead.work_id) == "replay_running"


def test_an_item_whose_replay_ended_can_be_discarded() -> None:
    dead = work_row(event_row(), "dead")
    replay_row(dead, "dead")
    assert isinstance(discard(dead.work_id, actor="ann", reason=""), Discarded)


def restored(*items: WorkItem) -> dict[str, Restored | Refused]:
    ids = [item.work_id for item in items]
    told = preview_restores(ids)
    outcomes = restore(ids, actor="ann", reason="by mistake")
    assert told == outcomes
    return outcomes


def test_a_discarded_item_is_restored_as_it_was_and_can_be_discarded_again() -> None:
    item = work_row(event_row(), "dead", last_error="no")
    before = WorkItem.objects.values().get(id=item.id)
    discard(item.work_id, actor="ann", reason="vendor gone")
    assert restored(item) == {item.work_id: Restored(item.work_id)}
    assert WorkItem.objects.values().get(id=item.id) == before
    assert isinstance(discard(item.work_id, actor="ann", reason="again"), Discarded)


def test_only_what_is_discarded_is_restored() -> None:
    dead, gone, done = (
        work_row(event_row(PAGES, source_id=str(n)), state, **columns)
        for n, (state, columns) in enumerate([("dead", {}), ("dead", {"discarded_at": LONG_AGO}), ("processed", {})])
    )
    outcomes = restored(dead, gone, done)
    assert [getattr(one, "code", "restored") for one in outcomes.values()] == ["not_discarded", "restored", "not_dead"]
    assert [one.code for one in restore(["csp:unknown", "ü"], actor="ann", reason="").values()] == ["not_found", "not_found"]
    done.refresh_from_db()
    assert (done.state, done.discarded_at) == ("processed", None)


def test_what_was_erased_is_not_restored() -> None:
    event = event_row(PAGES)
    item = work_row(event, "dead", discarded_at=LONG_AGO, last_error="of a person")
    erase_facts([event.id], 1)
    (outcome,) = restored(item).values()
    assert isinstance(outcome, Refused)
    assert outcome.code == "erased"
    item.refresh_from_db()
    assert (item.discarded_at, item.last_error) == (LONG_AGO, ERASED_TEXT)


def test_retry_now_ends_the_wait_alone() -> None:
    item = work_row(event_row(), "retry")
    before = WorkItem.objects.get(id=item.id)
    assert retry_now(item.work_id, actor="ann")
    item.refresh_from_db()
    assert item.run_after <= now()
    assert (item.state, item.attempts, item.lane_holder_key) == (before.state, before.attempts, before.lane_holder_key)
    assert not retry_now(item.work_id, actor="ann")


@pytest.mark.parametrize("state", ["pending", "blocked", "processing", "processed", "dead"])
def test_retry_now_moves_nothing_else(state: str) -> None:
    item = work_row(event_row(PAGES), state)
    before = WorkItem.objects.get(id=item.id).run_after
    assert not retry_now(item.work_id, actor="ann")
    assert WorkItem.objects.get(id=item.id).run_after == before
    assert not retry_now("unknown", actor="ann")
