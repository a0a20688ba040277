"""Jobs over items that an operator named one by one, and previews that go on later."""

from __future__ import annotations

import pytest

from connectors.operations import bulk_jobs
from connectors.operations.work_filters import WorkFilter, dead_items, from_json, to_json
from projection.bulk.job_rows import JobKind, JobRow, JobState
from projection.bulk.jobs import all_items
from projection.database import clock
from projection.models import Event, WorkItem
from projection.replay.replay import replay
from tests.support.deliveries import change, generations
from tests.support.flows_of_tests import recording
from tests.support.jobs_by_hand import assert_exact, codes, dead_letters, fixed, preview, results, run_with_workers, start
from tests.support.rows import CONTACTS, PAGES, event_row, replay_row, work_row

pytestmark = pytest.mark.usefixtures("database")


def named(*items: WorkItem | str) -> WorkFilter:
    return WorkFilter(work=tuple(item if isinstance(item, str) else item.work_id for item in items))


def test_each_named_item_has_its_result_and_a_conflict_is_one_of_them() -> None:
    """Three can be replayed, the source of one is active, one was replayed a second earlier by somebody else."""
    with recording() as seen:
        ingress = dead_letters(seen, 1, 2, 3, 4, 5, 6)
        ingress.admit(change(4))
        first = [generations(contact)[0] for contact in (1, 2, 3, 4, 5)]
        replay(first[4].work_id, actor="bob", reason="r")
        told = preview(chosen=named(*first)).expected
        job = run_with_workers(start(chosen=named(*first)))
    assert codes(job) == {"done": 3, "active_generation": 1, "already_replayed": 1}
    assert (told.possible, told.refused) == (3, {"active_generation": 1, "already_replayed": 1})
    assert results(job).keys() == {item.work_id for item in first}
    assert_exact(job)


def test_the_same_choice_twice_replays_nothing_twice() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2)
        chosen = named(*WorkItem.objects.all())
        jobs = [run_with_workers(start(chosen=chosen)) for _ in range(2)]
    assert [codes(job) for job in jobs] == [{"done": 2}, {"already_replayed": 2}]


def test_named_items_are_fixed_in_one_step_whatever_died_since() -> None:
    old = work_row(event_row(PAGES, source_id="old"), "dead", terminal_at="2020-01-01T00:00:00Z")
    for number in range(5):
        work_row(event_row(PAGES, source_id=str(number)), "dead")
    job = start(chosen=named(old, "unknown", "é"))
    assert (fixed(job).step, fixed(job).total) == (1, 1)


def test_discarded_items_that_are_named_are_told_of() -> None:
    with recording() as seen:
        dead_letters(seen, 1)
    WorkItem.objects.update(discarded_at=clock.now())
    gone = WorkItem.objects.get()
    assert codes(run_with_workers(start(JobKind.DISCARD, named(gone)))) == {"already_discarded": 1}
    assert codes(run_with_workers(start(JobKind.REPLAY, named(gone)))) == {"discarded": 1}


def test_a_small_job_is_done_without_a_router() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2)
    job = start(chosen=named(*WorkItem.objects.all()))
    bulk_jobs.hurry(job)
    assert codes(job) == {"done": 2}
    bulk_jobs.hurry(job)  # nothing is left
    again = start(chosen=named("nothing"))
    bulk_jobs.hurry(again)
    assert fixed(again).state is JobState.FINISHED


def test_a_step_that_fails_is_left_to_the_router(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    job = start()
    with monkeypatch.context() as patch:
        patch.setattr(bulk_jobs, "run_step", fail)
        bulk_jobs.hurry(job)
    due_in = fixed_due_in(job.id)
    assert due_in is not None
    assert due_in > 10


def fixed_due_in(job_id: int) -> float | None:
    job = bulk_jobs.jobs.find(job_id)
    return job.due_in if job else None


def test_too_many_names_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 1,000"):
        start(chosen=WorkFilter(work=tuple(map(str, range(1001)))))


def test_a_filter_survives_being_stored() -> None:
    chosen = WorkFilter(work=("a", "b"), fingerprint="f" * 64, unreplayed=True, until=clock.now())
    assert from_json(to_json(chosen)).work == ("a", "b")
    assert from_json(to_json(chosen)) == chosen


def test_a_fingerprint_is_taken_whole() -> None:
    one = work_row(event_row(PAGES, source_id="1"), "dead", error_fingerprint="ab" * 32)
    work_row(event_row(PAGES, source_id="2"), "dead", error_fingerprint="ab" * 31 + "cd")
    assert list(dead_items(WorkFilter(fingerprint="ab" * 32), unreplayed=False)) == [one]
    assert not dead_items(WorkFilter(fingerprint="ab" * 31), unreplayed=False).exists()
    assert not dead_items(WorkFilter(fingerprint="é"), unreplayed=False).exists()


def test_a_discard_may_leave_out_what_was_replayed() -> None:
    one, two = (work_row(event_row(PAGES, source_id=str(n)), "dead") for n in range(2))
    replay_row(two, "processed")
    assert preview(JobKind.DISCARD).expected.possible == 2
    assert preview(JobKind.DISCARD, WorkFilter(unreplayed=True)).expected.possible == 1
    assert codes(run_with_workers(start(JobKind.DISCARD, WorkFilter(unreplayed=True)))) == {"done": 1}
    assert list(WorkItem.objects.exclude(discarded_at=None)) == [one]


@pytest.mark.parametrize("page", [1, 3])
def test_a_preview_that_goes_on_counts_what_one_in_a_piece_does(monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    for source in (1, 2, 1, 1, 3, 2):
        work_row(event_row(CONTACTS, source_id=str(source)), "dead")
    whole = preview()
    assert (whole.expected.possible, whole.expected.deferred, whole.step) == (3, 3, 1)
    monkeypatch.setattr("projection.bulk.membership.PAGE", page)
    parts = preview()
    assert parts.expected == whole.expected
    assert parts.step == 6 // page + 1
    assert codes_expected(parts) == codes_expected(whole)


def codes_expected(job: JobRow) -> list[tuple[str, str]]:
    return [(item.work_id, item.code) for item in all_items(job.id)]


def test_a_scope_in_which_all_before_are_refused_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.membership.PAGE", 1)
    for number in range(3):
        event = event_row(CONTACTS)
        work_row(event, "dead")
        if number < 2:
            Event.objects.filter(id=event.id).update(route_snapshot="")
    told = preview()
    assert (told.expected.refused, told.expected.possible, told.expected.deferred) == ({"no_class_proof": 2}, 1, 0)
