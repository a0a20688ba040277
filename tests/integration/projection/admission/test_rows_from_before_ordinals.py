"""Rows from before ordinals, mixed with numbered ones (docs/protocol.md#without-ordinal): nothing lost, nothing run twice."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from connectors.models import Receipt
from connectors.routing.router import drain_receipts
from projection.database import clock
from projection.execution.worker import drain_claims
from projection.facts import RouteFacts
from projection.integrity.repair import repair
from projection.models import Event, WorkItem
from projection.states import State
from tests.support.deliveries import Ingress, change, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.rows import event_row, work_row
from tests.support.workers_by_hand import at

pytestmark = pytest.mark.usefixtures("database")


class History:
    """An old projection of one contact: rows written directly, as an older binary left them."""

    def __init__(self) -> None:
        self.ingress: Ingress = open_ingress()
        self.route: RouteFacts = self.ingress.route()
        self.now: datetime = clock.now()
        for number in range(20):
            self.ingress.admit(change(f"other-{number}"))  # ordinals 1 to 20 are taken
        WorkItem.objects.update(state=State.PROCESSED, terminal_at=self.now, projection_active_key=None)

    def event(self, ordinal: int, hours: float) -> Event:
        created = self.now + timedelta(hours=hours)
        return event_row(
            self.route,
            source_id="7",
            account=self.ingress.slug,
            pack_incarnation=self.ingress.pack.incarnation,
            enqueue_ordinal=ordinal,
            created_date=created,
        )

    def item(self, event: Event, state: str = State.PENDING) -> WorkItem:
        return work_row(event, state, run_after=self.now)


@pytest.fixture
def history(database: None) -> History:
    return History()


def executions() -> list[list[int]]:
    """Run everything due; the input event ids of each execution, in order."""
    found: list[list[int]] = []
    with recording(atomic=True) as seen:

        def note(generation: Any) -> None:
            found.append([one.event_id for one in generation.inputs])

        seen.acts += [note] * 50
        drain_claims()
    return found


def test_a_cycle_is_run_by_ingress_order_and_its_neighbours_by_their_edges(history: History) -> None:
    """A < C by ordinal, C < B and B < A by time: a true cycle; the selected event comes after all of them."""
    a, c = history.event(3, -1), history.event(4, -3)
    b = history.event(0, -2)
    first, last = history.event(0, -9), history.event(9, -0.5)
    history.item(last)
    assert executions() == [[first.id, c.id, b.id, a.id, last.id]]


def test_mixed_rows_belong_to_the_first_generation_that_is_not_before_them(history: History) -> None:
    old, early = history.event(0, -9), history.event(2, -8)
    bound = history.event(0, -7)
    later, selected = history.event(0, -6), history.event(5, -5)
    history.item(bound, State.PROCESSED)
    history.item(selected)
    assert executions() == [[later.id, selected.id]], "what the ended generation represents is subtracted"
    assert {old.id, early.id} <= set(Event.objects.values_list("id", flat=True))


def lossy(history: History) -> tuple[Event, Event]:
    """An unclaimed generation whose replacement by any numbered event of today loses the unnumbered one: the clock had run ahead."""
    unnumbered, selected = history.event(0, 1), history.event(5, 2)
    history.item(selected)
    return unnumbered, selected


def test_a_replacement_that_would_lose_an_input_is_refused_whole_and_the_task_stays_executable(history: History) -> None:
    unnumbered, selected = lossy(history)
    before = list(WorkItem.objects.order_by("id").values()), Event.objects.count()
    report = history.ingress.admit(change("unrelated"), change(7))
    assert (report.events, report.deferred) == (0, 1)
    assert (list(WorkItem.objects.order_by("id").values()), Event.objects.count()) == before
    receipt = Receipt.objects.get(state="pending")
    assert f"event {unnumbered.id} would be lost" in receipt.last_error
    assert executions() == [[unnumbered.id, selected.id]]
    Receipt.objects.update(next_attempt_at=None)
    assert drain_receipts().events == 2
    newest = Event.objects.filter(source_id="7").order_by("-id")[0]
    assert [newest.id] in executions()
    assert states(7) == ["processed", "processed"]


def test_what_a_retained_generation_represents_is_no_loss(history: History) -> None:
    unnumbered = history.event(0, 1)
    history.item(history.event(0, 1.5), State.DEAD)
    selected = history.event(5, 2)
    history.item(selected)
    report = history.ingress.admit(change(7))
    assert (report.events, report.deferred) == (1, 0)
    newest = Event.objects.filter(source_id="7").order_by("-id")[0]
    assert executions() == [[selected.id, newest.id]]
    assert unnumbered.id not in [selected.id, newest.id]


@pytest.mark.parametrize("numbered", [0, 1, 2])
def test_a_missing_task_of_rows_without_ordinals_is_repaired_once(numbered: int) -> None:
    ingress = open_ingress()
    ingress.route()
    events = [change(7) for _ in range(3)]
    ingress.admit(*events)
    WorkItem.objects.all().delete()
    for event in Event.objects.order_by("id")[: 3 - numbered]:
        Event.objects.filter(id=event.id).update(enqueue_ordinal=0)
    assert ingress.admit(*events).repaired == 3
    assert states(7) == ["pending"]
    assert ingress.admit(*events).repaired == 0
    assert executions() == [list(Event.objects.order_by("id").values_list("id", flat=True))]
    assert ingress.admit(*events, *events[:1]).repaired == 0
    assert states(7) == ["processed"]


def test_a_new_event_behind_history_without_ordinals_takes_only_itself(history: History) -> None:
    history.item(history.event(0, -2), State.PROCESSED)
    history.ingress.admit(change(7), change(7))
    newest = list(Event.objects.filter(source_id="7").order_by("id").values_list("id", flat=True))[1:]
    assert executions() == [newest]


def test_routes_do_not_share_history(history: History) -> None:
    history.ingress.route("second", kind="contact.copied")
    history.item(history.event(0, -1), State.PROCESSED)
    history.ingress.admit(change(7))
    newest = list(Event.objects.filter(source_id="7").order_by("id").values_list("id", flat=True))[1:]
    assert len(newest) == 2
    assert sorted(executions()) == [[newest[0]], [newest[1]]]


def test_a_generation_always_runs_its_selected_event(history: History) -> None:
    """The clock had run ahead: by time alone the new event would belong to a generation that has ended long ago."""
    history.item(history.event(0, 5), State.PROCESSED)
    history.ingress.admit(change(7))
    newest = Event.objects.filter(source_id="7").order_by("-id")[0]
    assert executions() == [[newest.id]]
    assert states(7) == ["processed", "processed"]


def test_an_event_behind_every_selection_is_nobodys_input_yet(history: History) -> None:
    """Its task is missing: it waits for the repair, and no generation takes it although its key has run."""
    first, selected = history.event(0, -3), history.event(0, -2)
    history.item(selected)
    behind = history.event(0, -1)
    assert executions() == [[first.id, selected.id]]
    assert repair().missing_tasks == 1
    assert executions() == [[behind.id]]


def test_numbered_rows_keep_their_ordinals_although_the_clock_ran_back_between_them(history: History) -> None:
    """In no cycle, so their edges decide and not the time."""
    second, first = history.event(6, -4), history.event(5, -3.5)
    oldest, last = history.event(0, -9), history.event(9, -0.5)
    history.item(last)
    assert executions() == [[oldest.id, first.id, second.id, last.id]]


def test_a_selection_without_ordinal_is_no_proof_although_the_new_one_is_later(history: History) -> None:
    """The clock had run back: what the unnumbered selection represents by time, the numbered one behind it does not by ordinal."""
    early, selected = history.event(9, -3), history.event(0, -2)
    history.item(selected)
    missing = history.event(5, -1)
    before = list(WorkItem.objects.order_by("id").values())
    report = history.ingress.admit(change(7, id=missing.delivery_id))
    assert (report.repaired, report.deferred) == (0, 1)
    assert list(WorkItem.objects.order_by("id").values()) == before
    assert f"event {early.id} would be lost" in Receipt.objects.get(state="pending").last_error
    assert executions() == [[early.id, selected.id]]
    Receipt.objects.update(next_attempt_at=None)
    drain_receipts()
    assert executions() == [[missing.id]]


def test_numbered_rows_need_no_proof_by_time() -> None:
    """The clock ran back between two admissions: where every row has its ordinal, that alone decides and nothing is refused."""
    ingress = open_ingress()
    ingress.route()
    moment = clock.now()
    with at(moment):
        ingress.admit(change(7))
    with at(moment - timedelta(minutes=5)):
        report = ingress.admit(change(7))
    assert (report.events, report.deferred) == (1, 0)
    assert states(7) == ["pending"]
    assert executions() == [list(Event.objects.order_by("enqueue_ordinal").values_list("id", flat=True))]
