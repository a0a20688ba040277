"""Execute: what a plain flow is given, and what each of its outcomes does to its item."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from projection import flows
from projection.claiming.rescue import rescue
from projection.execution import dispatcher
from projection.execution.heartbeat import Heartbeat
from projection.execution.worker import ClaimWorker, drain_claims
from projection.facts import RetryPolicy
from projection.flows import DeadLetter, Generation, LeaseLost, RetryLater, Skip
from projection.limits import starts
from projection.models import Destination, Event, WorkFailure, WorkItem
from projection.safe_text import ERROR_TEXT_BYTES
from projection.states import State
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import Recorder, recording, write, written
from tests.support.workers_by_hand import ByHand, let_leases_run_out, let_retries_come_due

pytestmark = pytest.mark.usefixtures("sound_database")


def per_event(**options: Any) -> Ingress:
    ingress = open_ingress()
    ingress.route(mode="per_event", **options)
    return ingress


def failures() -> list[tuple[int, str]]:
    return list(WorkFailure.objects.order_by("id").values_list("attempt", "outcome"))


def test_a_flow_is_given_its_generation() -> None:
    ingress = open_ingress()
    facts = ingress.route()
    ingress.admit(*changes(7, 2))
    given: list[Generation] = []
    with recording() as seen:
        seen.acts.append(given.append)
        drain_claims()
    (generation,) = given
    item = generations(7)[0]
    assert (generation.work_id, generation.projection_key, generation.attempt) == (item.work_id, item.projection_key, 1)
    assert (generation.route, generation.namespace, generation.source_lane) == (facts, "default", "contact:7")
    assert (generation.source.type, generation.source.id) == ("contact", "7")
    assert generation.selected == generation.inputs[-1]
    assert [one.payload for one in generation.inputs] == [event.payload for event in Event.objects.order_by("id")]
    assert generation.inputs[0].data["contact"] == "7"
    assert generation.deadline.tzinfo is not None


@pytest.mark.parametrize(
    ("outcome", "state", "failure", "error"),
    [
        (None, "processed", [], None),
        (Skip("deleted at the provider"), "skipped", [], "deleted at the provider"),
        (DeadLetter("no such account"), "dead", [(1, "dead")], "no such account"),
        (DeadLetter(), "dead", [(1, "dead")], "dead-lettered by its flow"),
        (ValueError("no"), "retry", [(1, "retry")], "ValueError: no"),
        (RetryLater(60, "busy"), "retry", [(1, "retry")], "busy"),
        (SystemExit(3), "retry", [(1, "retry")], "SystemExit: 3"),
        (RecursionError(), "retry", [(1, "retry")], "RecursionError"),
    ],
)
def test_outcomes(outcome: BaseException | None, state: str, failure: list[tuple[int, str]], error: str | None) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    with recording() as seen:
        seen.raises.append(outcome)
        assert drain_claims() == 1
    (item,) = generations(7)
    assert (item.state, item.last_error, failures()) == (state, error, failure)
    assert (item.terminal_at is not None) is (state != "retry")
    assert (item.lane_holder_key == item.lane_key) is (state == "retry")
    assert (item.lease_token, item.lease_owner, item.lease_expires_at) == (None, None, None)


@pytest.mark.parametrize(("requested", "seconds"), [(60, 60), (0, 1), (10**9, 3600), (float("inf"), 3600), (float("nan"), 1)])
def test_a_requested_delay_is_kept_within_the_route_s_cap(requested: float, seconds: int) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    with recording() as seen:
        seen.raises.append(RetryLater(requested))
        drain_claims()
    failure = WorkFailure.objects.get()
    assert failure.delay_ms == seconds * 1000
    (item,) = generations(7)
    assert abs(item.run_after - failure.created_date - timedelta(seconds=seconds)) < timedelta(seconds=5)


@pytest.mark.parametrize("delay", [None, "soon", [1]])
def test_a_delay_that_is_no_number_fails_the_attempt_that_gave_it(delay: Any) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    with recording() as seen:
        seen.acts.append(lambda _: RetryLater(delay))
        drain_claims()
    assert (states(7), failures()) == (["retry"], [(1, "retry")])


def test_deferring_without_counting_burns_no_budget() -> None:
    ingress = per_event(retry=RetryPolicy(attempts=2))
    ingress.admit(change(7))
    with recording() as seen:
        for _ in range(5):
            seen.raises.append(RetryLater(60, "busy", count_attempt=False))
            assert drain_claims() == 1
            let_retries_come_due()
        assert generations(7)[0].attempts == 0
        drain_claims()
    assert states(7) == ["processed"]
    assert failures() == [(1, "deferred")]
    assert WorkFailure.objects.get().times == 5


def test_deferring_ends_with_the_route_s_give_up_after() -> None:
    ingress = per_event(retry=RetryPolicy(give_up_after=60.0))
    ingress.admit(change(7))
    with recording() as seen:
        seen.raises += [RetryLater(60, "busy", count_attempt=False)] * 2
        drain_claims()
        let_retries_come_due()
        WorkItem.objects.update(first_claimed_at=F("first_claimed_at") - timedelta(seconds=61))
        drain_claims()
    (item,) = generations(7)
    assert (item.state, failures()) == ("dead", [(1, "deferred"), (1, "dead")])
    assert (item.last_error or "").startswith("busy (given up after 6")


def test_waiting_before_the_first_attempt_uses_nothing_of_give_up_after() -> None:
    ingress = per_event(retry=RetryPolicy(give_up_after=60.0))
    ingress.admit(change(7))
    WorkItem.objects.update(created_date=F("created_date") - timedelta(days=1))
    with recording() as seen:
        seen.raises.append(ValueError("the first attempt of all"))
        drain_claims()
    assert states(7) == ["retry"]


def test_the_budget_ends_in_a_dead_letter_with_one_failure_for_each_attempt() -> None:
    ingress = per_event(retry=RetryPolicy(base=0, attempts=3))
    ingress.admit(change(7))
    with recording() as seen:
        for attempt in (1, 2, 3):
            seen.raises.append(ValueError(f"number {attempt}"))
            assert drain_claims() == 1
            let_retries_come_due()
    assert states(7) == ["dead"]
    assert failures() == [(1, "retry"), (2, "retry"), (3, "dead")]
    assert len(set(WorkFailure.objects.values_list("error_fingerprint", flat=True))) == 2, "the last one names the used-up budget"


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad 👨‍👩‍👧 \x00 \udc88 " + "x" * 2_000_000),
        _Unspeakable(),
        DeadLetter("\ud800\x00" * 9000),
        Skip("\ud800" + "🎩" * 9000),
        RetryLater(60, "\ud800" * 9000),
        RetryLater(60, "\x00" * 9000, count_attempt=False),
    ],
    ids=["text that no server stores", "no text", "dead letter", "skip", "retry later", "deferred"],
)
def test_any_failure_can_be_stored_and_the_worker_goes_on(error: BaseException) -> None:
    ingress = per_event(retry=RetryPolicy(base=0, attempts=2))
    ingress.admit(change(7), change(8))
    with recording() as seen:
        seen.raises_for["7"] = error
        drain_claims()
        let_retries_come_due()
        drain_claims()
    assert states(8) == ["processed"]
    assert states(7)[0] in ("dead", "skipped", "retry")
    texts = [*WorkFailure.objects.values_list("error", flat=True), generations(7)[0].last_error or ""]
    assert texts
    assert all(text and len(text.encode()) <= ERROR_TEXT_BYTES for text in texts)


def test_a_tail_commits_with_the_end_of_its_item() -> None:
    ingress = per_event()
    ingress.admit(change(7))

    def tail(generation: Generation) -> None:
        with generation.commit():
            write(generation)
        assert states(7) == ["processed"]

    with recording() as seen:
        seen.acts.append(tail)
        drain_claims()
    assert (states(7), written(), failures()) == (["processed"], 1, [])


def test_what_fails_after_the_tail_changes_nothing() -> None:
    ingress = per_event()
    ingress.admit(change(7))

    def tail(generation: Generation) -> None:
        with generation.commit():
            write(generation)

    with recording() as seen:
        seen.acts.append(tail)
        seen.raises.append(ValueError("too late"))
        drain_claims()
    assert (states(7), written(), failures()) == (["processed"], 1, [])


def test_a_tail_that_fails_rolls_back_and_the_attempt_is_retried() -> None:
    ingress = per_event()
    ingress.admit(change(7))

    def tail(generation: Generation) -> None:
        with generation.commit():
            write(generation)
            raise ValueError("half way")

    with recording() as seen:
        seen.acts += [tail]
        drain_claims()
        assert (states(7), written(), failures()) == (["retry"], 0, [(1, "retry")])
        let_retries_come_due()
        seen.acts += [_commit]
        drain_claims()
    assert (states(7), written()) == (["processed"], 1)


def _commit(generation: Generation) -> None:
    with generation.commit():
        write(generation)


def test_a_tail_of_a_lost_lease_writes_nothing() -> None:
    ingress = per_event()
    ingress.admit(change(7))
    raised: list[BaseException] = []

    def lose_then_commit(generation: Generation) -> None:
        let_leases_run_out()
        assert rescue() == 1
        try:
            _commit(generation)
        except LeaseLost as error:
            raised.append(error)
            raise

    with recording() as seen:
        seen.acts.append(lose_then_commit)
        drain_claims()
        assert len(raised) == 1
        assert failures()[0] == (1, "rescued")
        drain_claims()
    assert (states(7), written()) == (["processed"], 0)
    assert failures() == [(1, "rescued")]


def test_only_plain_flows_have_a_tail() -> None:
    ingress = per_event()
    ingress.admit(change(7))
    with recording(atomic=True) as seen:
        seen.acts.append(_commit)
        drain_claims()
    assert states(7) == ["retry"]
    assert "commit() is only for plain flows" in WorkFailure.objects.get().error


def _step(stop: Callable[[Recorder], bool] = lambda _: False, **flow: Any) -> tuple[Recorder, int]:
    """One step of a worker with a recording flow."""
    with recording(**flow) as seen, Heartbeat("worker", lease_seconds=60) as heartbeat:
        worker = ClaimWorker(heartbeat, stop=lambda: stop(seen))
        try:
            return seen, worker.step()
        finally:
            worker.close()


@pytest.mark.parametrize("atomic", [False, True], ids=["plain", "atomic"])
def test_on_stop_what_has_not_started_is_handed_back_without_using_its_budget(atomic: bool) -> None:
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(6)])
    seen, claimed = _step(lambda _: True, atomic=atomic)
    assert (claimed, seen.runs) == (6, [])
    items = list(WorkItem.objects.order_by("id"))
    assert {(item.state, item.attempts, item.lane_holder_key == item.lane_key) for item in items} == {("retry", 0, True)}
    assert all(item.claimed_at is not None for item in items)
    assert failures() == []
    with recording() as again:
        assert drain_claims() == 6
    assert {attempt for _, attempt, _ in again.runs} == {1}


def test_a_stop_lets_an_atomic_group_end_and_hands_the_rest_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.execution.execute.ATOMIC_GROUP_SECONDS", 0.0)
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(4)])
    seen, _ = _step(lambda seen: len(seen.runs) >= 2, atomic=True)
    assert len(seen.runs) == 2
    assert sorted(WorkItem.objects.values_list("state", flat=True)) == ["processed", "processed", "retry", "retry"]


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """An event that stuck flows wait for; set at the end, so that their threads end too."""
    event = threading.Event()
    yield event
    event.set()


def test_a_flow_past_its_time_out_is_recorded_and_its_siblings_are_handed_back(
    released: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "TICK_SECONDS", 0.02)
    monkeypatch.setattr(starts, "A_DESTINATION", 1)
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(4)])

    def hang(generation: Generation) -> None:
        released.wait()

    flows.flow("test.record", timeout=0.05)(hang)
    try:
        with Heartbeat("worker", lease_seconds=60) as heartbeat:
            worker = ClaimWorker(heartbeat)
            worker.step()
            worker.finish()
            assert worker.is_stuck
            worker.close()
    finally:
        flows.forget("test.record")
    assert failures() == [(1, "timeout")]
    assert WorkFailure.objects.get().error == "FlowTimeout: the flow ran longer than its timeout of 0.05 s"
    assert sorted(WorkItem.objects.values_list("state", "attempts")) == [("retry", 0)] * 3 + [("retry", 1)]


def test_what_a_stuck_thread_reports_later_changes_nothing(released: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "TICK_SECONDS", 0.02)
    ingress = per_event()
    ingress.admit(change(7))
    raised: list[BaseException] = []
    ended = threading.Event()

    def hang(generation: Generation) -> None:
        released.wait()
        try:
            _commit(generation)
        except LeaseLost as error:
            raised.append(error)
        finally:
            connection.close()
            ended.set()

    flows.flow("test.record", timeout=0.05)(hang)
    try:
        drain_claims()
        released.set()
        assert ended.wait(10)
    finally:
        flows.forget("test.record")
    assert (len(raised), states(7), written(), failures()) == (1, ["retry"], 0, [(1, "timeout")])


def test_one_slow_destination_does_not_keep_the_others_waiting(released: threading.Event) -> None:
    ingress = open_ingress()
    ingress.route("slow", mode="per_event", flow="test.slow", on=("slow",))
    ingress.route("fast", mode="per_event", on=("fast",))
    ingress.admit(*[change(n, kind="slow") for n in range(6)], *[change(n, kind="fast") for n in range(10, 16)])
    fast_done = threading.Event()

    def slow(generation: Generation) -> None:
        assert fast_done.wait(10)

    with recording() as seen:
        flows.flow("test.slow")(slow)
        try:
            seen.acts += [lambda _: None] * 5 + [lambda _: fast_done.set()]
            assert drain_claims() == 12
        finally:
            flows.forget("test.slow")
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


def test_an_item_whose_range_is_broken_fails_alone_with_the_reason() -> None:
    ingress = open_ingress()
    ingress.route(retry=RetryPolicy(attempts=1))
    ingress.admit(change(7), change(8))
    WorkItem.objects.filter(source_lane="contact:7").update(
        projection_key="csp:" + "0" * 64, projection_active_key="csp:" + "0" * 64
    )
    with recording() as seen:
        assert drain_claims() == 2
    assert seen.sources == ["8"]
    assert (states(7), states(8)) == (["dead"], ["processed"])
    assert "does not contain its selected event" in WorkFailure.objects.get().error
    WorkItem.objects.filter(source_lane="contact:7").update(projection_key=Event.objects.get(source_id="7").projection_key)


@pytest.mark.parametrize("snapshot", [None, "no json", "[]", '{"id": 1}'])
@pytest.mark.parametrize("others", [0, 2])
def test_an_item_whose_route_cannot_be_proven_is_dead_and_its_siblings_run(snapshot: str | None, others: int) -> None:
    ingress = per_event()
    ingress.admit(change(7), *[change(n) for n in range(others)])
    event = Event.objects.filter(source_id="7")
    proof = event.get().route_snapshot
    event.update(route_snapshot=snapshot)
    with recording() as seen:
        assert drain_claims() == 1 + others
    assert (states(7), len(seen.runs)) == (["dead"], others)
    assert "has no valid route" in WorkFailure.objects.get().error
    event.update(route_snapshot=proof)


def test_a_worker_reports_each_item_once_and_drops_its_lease() -> None:
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(30)])
    seen, claimed = _step()
    assert (claimed, len(seen.runs)) == (30, 30)
    assert set(WorkItem.objects.values_list("state", flat=True)) == {State.PROCESSED}


def test_two_batches_of_one_worker_do_not_share_leases() -> None:
    ingress = per_event()
    ingress.admit(change(7), change(8))
    with recording():
        first, second = ByHand().claim(1), ByHand().claim(1)
    assert first[0].token != second[0].token


@pytest.mark.parametrize("options", [{}, {"atomic": True}, {"batch": True}])
@pytest.mark.parametrize("raised", [ValueError, DeadLetter, Skip, ConnectionError])
def test_an_error_is_stored_without_what_it_quotes_of_masked_fields(
    raised: type[BaseException], options: dict[str, bool], caplog: pytest.LogCaptureFixture
) -> None:
    ingress = per_event(masks=("$.email",))
    ingress.admit(change(7, email="ada@example.com", name="Ada"))
    with recording(**options) as seen:
        seen.raises.extend(raised("Ada has no account for 'ada@example.com'") for _ in range(3))
        drain_claims()
    (item,) = generations(7)
    texts = [
        item.last_error,
        *WorkFailure.objects.values_list("error", flat=True),
        *Destination.objects.values_list("last_error", flat=True),
    ]
    assert item.last_error
    assert item.last_error.endswith("Ada has no account for '•••'")
    assert "ada@example.com" not in f"{texts} {caplog.text}"
