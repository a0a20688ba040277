"""Steps of bulk jobs: each item gets its result once, in lane order; what has to wait waits, and what is at fault is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from connectors.models import AuditEntry, Receipt, Route
from connectors.operations.bulk_jobs import JobRunner
from connectors.retention.prune import retain
from connectors.tasks import route_loop
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobKind, JobState
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.job_models import Job, JobItem
from projection.models import Event, WorkItem
from projection.replay.decision import Replayed
from projection.replay.replay import replay
from tests.support.deliveries import change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.gates import is_statement
from tests.support.jobs_by_hand import assert_exact, codes, dead_letters, fixed, now, results, run, run_with_workers, start, step
from tests.support.rows import LONG_AGO
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")


def test_each_dead_letter_is_replayed_once_and_says_as_what() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2, 3)
        job = run(start())
        assert (job.state, job.total, job.done) == (JobState.FINISHED, 3, 3)
        assert_exact(job)
        assert drain_claims() == 3
        assert seen.sources == ["1", "2", "3"]
    assert {item.state for item in jobs.all_items(job.id)} == {ItemState.DONE}


def test_of_five_the_three_that_can_be_are_replayed_and_two_say_why() -> None:
    """One source is active, one item was replayed a second ago, two operators start a job each."""
    with recording() as seen:
        ingress = dead_letters(seen, 0, 1, 2, 3, 4)
        first, second = fixed(start()), fixed(start(actor="bob"))
        ingress.admit(change(3))
        earlier = replay(generations(4)[0].work_id, actor="somebody", reason="a second ago")
        assert isinstance(earlier, Replayed)
        before = list(WorkItem.objects.filter(state="dead").order_by("id").values())
        run(first)
        assert codes(first) == {"done": 3, "active_generation": 1, "already_replayed": 1}
        reasons = {item.code: item.reason or "" for item in jobs.all_items(first.id)}
        assert generations(3)[1].work_id in reasons["active_generation"]
        assert earlier.replay_work_id in reasons["already_replayed"]
        run(second)
        assert codes(second) == {"active_generation": 1, "already_replayed": 4}
        assert list(WorkItem.objects.filter(state="dead").order_by("id").values()) == before
        for job in (first, second):
            assert now(job).state is JobState.FINISHED
            assert_exact(job)
        assert WorkItem.objects.filter(replay_of_work_id__isnull=False).count() == 4
        drain_claims()


def test_a_replayed_sequence_runs_one_at_a_time_in_its_order_behind_what_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items of one lane, replayed in steps of two."""
    monkeypatch.setattr("projection.bulk.steps.ITEMS_A_STEP", 2)
    ingress = open_ingress()
    ingress.route(mode="per_event")
    with recording() as seen:
        seen.raises += [DeadLetter("bad") if number in (3, 5, 8) else None for number in range(1, 9)]
        ingress.admit(*changes("L", 8))
        drain_claims()
        ingress.admit(*changes("L", 2), change("M"))
        worker = ByHand()
        ninth, other = worker.claim()
        job = run(start())
        assert (job.state, job.done) == (JobState.FINISHED, 3)
        assert states("L")[8:] == ["processing", "blocked", "blocked", "blocked", "blocked"]
        report(other)
        order, running = [], ninth
        while True:
            assert WorkItem.objects.filter(source_lane="contact:L", lane_holder_key__isnull=False).count() == 1
            report(running)
            order.append([one.ordinal for one in running.inputs])
            claimed = worker.claim()
            if not claimed:
                break
            (running,) = claimed
    assert order == [[9], [10], [3], [5], [8]]
    assert set(states("M")) == {"processed"}


def test_of_one_source_each_waits_for_the_replay_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.steps.ITEMS_A_STEP", 2)
    with recording() as seen:
        dead_letters(seen, 1, 2, 1, 1, 3, 1)
        job = run(start())
        assert (job.state, job.done, job.deferred) == (JobState.RUNNING, 3, 3)
        assert [item.state.value for item in jobs.all_items(job.id)] == ["done", "done", "deferred", "deferred", "done", "deferred"]
        assert set(codes(job)) == {"done", "same_source"}
        for left in (2, 1, 0):
            drain_claims()
            jobs.postpone(now(job), 0.0)
            run(job)
            assert now(job).deferred == left
            assert WorkItem.objects.filter(source_lane="contact:1", state__in=["pending", "blocked"]).count() == 1
        assert now(job).state is JobState.FINISHED
        drain_claims()
        assert_exact(job)
        inputs = [ordinals[-1] for work, _, ordinals in seen.runs if work in {one.work_id for one in generations(1)}]
        assert inputs == sorted(inputs)


def test_a_later_one_never_overtakes_a_deferred_one_of_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.steps.ITEMS_A_STEP", 2)
    with recording() as seen:
        dead_letters(seen, 1, 1, 1)
        job = fixed(start())
        step(job)
        drain_claims()  # the first replay has ended before the third item's turn comes
        step(job)
        assert [item.state.value for item in jobs.all_items(job.id)] == ["done", "deferred", "deferred"]
        assert run_with_workers(job).done == 3


def test_what_waits_goes_on_also_when_the_replay_before_it_died() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 1)
        job = run(start())
        seen.raises.append(DeadLetter("again"))
        assert run_with_workers(job).done == 2
        drain_claims()
        assert_exact(job)


def test_an_item_replayed_by_somebody_while_it_waited_is_told() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 1)
        job = run(start())
        drain_claims()
        second = generations(1)[1]
        assert isinstance(replay(second.work_id, actor="bob", reason="r"), Replayed)
        drain_claims()
        run_with_workers(job)
        assert codes(job) == {"done": 1, "already_replayed": 1}


def test_discards_go_by_jobs_as_well() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2, 3, 3)
        job = fixed(start(JobKind.DISCARD))
        replay(generations(2)[0].work_id, actor="bob", reason="r")
        assert run(job).state is JobState.FINISHED
        assert codes(job) == {"done": 3, "replay_running": 1}
        assert_exact(job)
        assert WorkItem.objects.filter(discarded_by="ann", discard_reason="fixed").count() == 3
        drain_claims()


def test_namespaces_are_acted_on_apart() -> None:
    with recording() as seen:
        other = open_ingress(slug="other", in_namespace="second")
        other.route()
        dead_letters(seen, 1, ingress=other)
        dead_letters(seen, 2, 3)
        job = fixed(start())
        assert [step(job), step(job)] in ([1, 2], [2, 1])
        assert now(job).state is JobState.FINISHED
        assert_exact(job)
        drain_claims()


def test_a_retargeting_job_goes_by_the_current_routes() -> None:
    with recording() as seen:
        ingress = dead_letters(seen, 1, on=("changed",))
        ingress.route("gone", on=("gone",), kind="contact.gone")
        seen.raises.append(DeadLetter("bad"))
        ingress.admit(change(2, kind="gone"))
        drain_claims()
        version = ingress.route(version=2, on=("changed",))
        Route.objects.filter(route_key="gone").update(is_current=False)
        job = run(start(retarget=True))
        assert codes(job) == {"done": 1, "no_current_route": 1}
        assert generations(1)[1].route_id == version.id
        drain_claims()


@pytest.mark.parametrize(("broken", "code"), [("no snapshot", "no_class_proof"), ("{more attempts than a column takes}", "failed")])
def test_one_item_at_fault_does_not_stop_the_others(broken: str, code: str) -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2, 3)
        bad = generations(2)[0]
        snapshot = Event.objects.get(id=bad.event_id).route_snapshot or ""
        if broken.startswith("{"):
            broken = json.dumps({**json.loads(snapshot), "retry": {"attempts": 10**12}})
        Event.objects.filter(id=bad.event_id).update(route_snapshot=broken)
        job = run(start())
        Event.objects.filter(id=bad.event_id).update(route_snapshot=snapshot)
        assert job.state is JobState.FINISHED
        assert codes(job) == {"done": 2, code: 1}
        assert results(job)[bad.work_id] == ("refused", code)
        assert_exact(job)
        drain_claims()


def test_a_row_that_another_transaction_holds_is_told_and_the_others_go_on() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2, 3)
        held = generations(2)[0]

        def fail(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            if is_statement("lock_work_items", sql) and held.id in params["ids"]:
                raise OperationalError(1205, "Lock wait timeout exceeded; try restarting transaction")
            return execute(sql, params, many, context)

        job = fixed(start())
        with connection.execute_wrapper(fail):
            run(job)
        assert codes(job) == {"done": 2, "locked": 1}
        assert_exact(job)
        drain_claims()


def test_a_lock_that_keeps_all_items_waiting_is_not_their_fault() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2)
        job = fixed(start())

        def fail(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            if is_statement("lock_namespace", sql):
                raise OperationalError(1205, "Lock wait timeout exceeded; try restarting transaction")
            return execute(sql, params, many, context)

        runner = JobRunner()
        with connection.execute_wrapper(fail):
            assert runner.step() == 1
        assert codes(job) == {"waiting": 2}
        assert 0 < (now(job).due_in or 0) <= 15
        jobs.postpone(now(job), 0.0)
        assert run(job).done == 2
        drain_claims()


def test_a_step_of_a_hundred_items_takes_a_bounded_number_of_statements() -> None:
    with recording() as seen:
        ingress = open_ingress()
        ingress.route()
        for contact in range(100):
            seen.raises_for[str(contact)] = DeadLetter("bad")
        ingress.admit(*[change(contact) for contact in range(100)])
        drain_claims()
        seen.raises_for.clear()
        job = fixed(start())
        with CaptureQueriesContext(connection) as hundred:
            assert step(job) == 100
        assert len(hundred) <= 28
        drain_claims()


def test_the_trail_has_the_start_each_step_and_the_end() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2)
        job = run(start(reason="the receiver is open again"))
        drain_claims()
    entries = AuditEntry.objects.filter(target=f"job {job.id}").order_by("id")
    assert [(entry.action, entry.count) for entry in entries] == [("job.start", 1), ("work.replay", 2), ("job.end", 2)]
    assert {(entry.actor, entry.reason) for entry in entries} == {("ann", "the receiver is open again")}


def test_the_router_does_the_steps_between_its_batches() -> None:
    with recording() as seen:
        ingress = dead_letters(seen, 1, 2)
        job = start()
        ingress.send(change(3))
        route_loop(stop=lambda: now(job).finished is not None)
        assert Receipt.objects.filter(state="pending").count() == 0
        assert now(job).done == 2
        drain_claims()


def test_the_runner_asks_one_thing_while_there_is_nothing_to_do() -> None:
    runner = JobRunner()
    with CaptureQueriesContext(connection) as asked:
        assert runner.step() == 0
    assert (len(asked), runner.next_due) == (1, None)


def test_a_schema_from_before_jobs_has_none() -> None:
    with connection.cursor() as cursor:
        cursor.execute("RENAME TABLE `_System_ConnectorJob` TO `_System_ConnectorJob_away`")
        try:
            assert JobRunner().step() == 0
        finally:
            cursor.execute("RENAME TABLE `_System_ConnectorJob_away` TO `_System_ConnectorJob`")


def test_a_job_whose_step_fails_is_tried_later_and_the_next_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with recording() as seen:
        dead_letters(seen, 1)
        broken, sound = start(retarget=True), start(JobKind.DISCARD)
        fixed(broken), fixed(sound)
        monkeypatch.setattr("connectors.operations.bulk_jobs.current_targets", lambda work_ids: 1 / 0)
        runner = JobRunner()
        while runner.step():
            pass
        assert now(sound).state is JobState.FINISHED
        assert (now(broken).state, now(broken).waiting) == (JobState.RUNNING, 1)
        assert runner.next_due is not None
        assert 0 < runner.next_due <= 15


def test_the_retention_takes_jobs_along() -> None:
    run(start())
    Job.objects.update(finished_at=LONG_AGO)
    running = start()
    assert retain(dry_run=True).jobs == 1
    assert retain().jobs == 1
    assert Job.objects.get().id == running.id


def test_ended_jobs_go_with_their_items_after_their_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.jobs.ITEMS_A_PAGE", 2)
    monkeypatch.setattr("projection.bulk.jobs.JOBS_A_PAGE", 1)
    with recording() as seen:
        dead_letters(seen, 1, 2, 3)
        old, middle, running = run(start()), run(start()), fixed(start(JobKind.DISCARD))
        drain_claims()
    ended = now(middle).finished
    assert ended is not None
    assert jobs.prune_jobs(ended, dry_run=True) == 1
    assert jobs.prune_jobs(ended) == 1
    assert set(Job.objects.values_list("id", flat=True)) == {middle.id, running.id}
    assert set(JobItem.objects.values_list("job_id", flat=True)) == {running.id}
    assert jobs.find(old.id) is None
