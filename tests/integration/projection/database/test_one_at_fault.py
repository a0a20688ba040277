"""One row that a fault has broken keeps nobody else from his turn: it fails alone, and is named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models import F

from connectors.models import Namespace
from connectors.routing.sweep import sweep
from projection.admission.admit import admit
from projection.admission.stored_events import stored_events
from projection.claiming.rescue import rescue
from projection.database import clock
from projection.database.bisecting import run_bisecting
from projection.execution.worker import drain_claims
from projection.facts import RouteFacts
from projection.integrity.invariants import audit
from projection.integrity.repair import repair
from projection.models import Event, WorkItem
from tests.support import commands
from tests.support.deliveries import Ingress, change, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.rows import event_row, work_row
from tests.support.workers_by_hand import ByHand, let_leases_run_out

pytestmark = pytest.mark.usefixtures("database")


def queue_twice(ingress: Ingress, contact: int) -> None:
    """A contact's active generation, which was claimed, gets two queued successors: nobody can tell which one follows."""
    ingress.admit(change(contact))
    successor = generations(contact)[-1]
    WorkItem.objects.filter(id=successor.id).update(work_id="csp:" + f"{contact:064x}")
    ingress.admit(change(contact))
    twin = generations(contact)[-1]
    assert (twin.state, twin.id) == ("blocked", successor.id)
    twin.pk = None
    twin.work_id = "csp:" + "f" * 64
    twin.save()


@pytest.mark.parametrize("bad", [(), (0,), (4,), (1, 3), (0, 1, 2, 3, 4)])
def test_what_fails_together_is_done_in_parts_but_what_is_at_fault(database: None, bad: tuple[int, ...]) -> None:
    faults: list[tuple[int, str]] = []
    calls: list[list[int]] = []

    def unit(parts: list[int]) -> list[int]:
        calls.append(parts)
        found = [part for part in parts if part in bad]
        if found:
            raise ValueError(f"bad {found}")
        return parts

    done = run_bisecting("test", range(5), lambda parts: unit(list(parts)), lambda part, error: faults.append((part, str(error))))
    assert [part for parts in done for part in parts] == [part for part in range(5) if part not in bad]
    assert faults == [(part, f"bad [{part}]") for part in bad]
    assert len(calls) == 1 or bad


def test_a_lost_connection_is_nobody_s_fault(database: None) -> None:
    def unit(_: object) -> None:
        raise OperationalError(2006, "Server has gone away")

    with pytest.raises(OperationalError):
        run_bisecting("test", [1, 2], unit, lambda *_: pytest.fail("no part is at fault"))


def test_a_lease_that_cannot_be_ended_keeps_no_other_from_its_rescue(capsys: pytest.CaptureFixture[str]) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7), change(8))
    with recording():
        assert len(ByHand().claim()) == 2
        queue_twice(ingress, 7)
        WorkItem.objects.filter(state="processing").update(max_attempts=1, workers_lost=1)
        let_leases_run_out()
        assert rescue() == 1
        assert (states(7), states(8)) == (["processing", "blocked", "blocked"], ["dead"])
        assert rescue() == 0
    assert "more than one queued generation" in capsys.readouterr().err
    assert "one_successor" in {found.invariant for found in audit().violations}


def test_a_result_that_cannot_be_copied_keeps_no_claim_from_what_is_due() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    WorkItem.objects.update(claimed_at=clock.now())
    queue_twice(ingress, 7)
    WorkItem.objects.update(claimed_at=None)
    ingress.admit(change(8), change(9))
    ended = Event.objects.filter(id__in=[generations(7)[0].event_id, generations(8)[0].event_id])
    ended.update(executor_owner="event", status="processed", terminal_at=clock.now())
    with recording() as seen:
        assert drain_claims() == 1
    assert seen.sources == ["9"]
    assert (states(7), states(8)) == (["pending", "blocked", "blocked"], ["processed"])


def test_items_whose_event_is_not_retained_are_dead_letters_and_make_room() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(lost) for lost in range(4)])
    ingress.admit(change(0), change(9))
    Event.objects.filter(source_id__in=["1", "2", "3"]).delete()
    Event.objects.filter(source_id="0").order_by("id")[0].delete()
    with recording() as seen:
        assert drain_claims(batch=2) == 6
    assert sorted(seen.sources) == ["0", "9"], "what is behind one in its lane, and other lanes"
    assert states(0) == ["dead", "processed"]
    lost = generations(1)[0]
    assert (lost.state, lost.last_error) == ("dead", f"its event {lost.event_id} is no longer stored; run `audit`")
    assert {found.invariant for found in audit().violations} == {"selected_event"}


def test_an_item_whose_event_proves_another_flow_is_dead_and_its_siblings_run() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(7), change(8))
    proof = Event.objects.get(source_id="7").route_snapshot or ""
    Event.objects.filter(source_id="7").update(route_snapshot=proof.replace('"companion_flow":"record"', '"companion_flow":"gone"'))
    with recording() as seen:
        assert drain_claims() == 2
    assert seen.sources == ["8"]
    assert (states(7), states(8)) == (["dead"], ["processed"])
    assert "belongs to flow 'test.gone'" in (generations(7)[0].last_error or "")


Spoil = Callable[[Ingress, RouteFacts], str]
"""Breaks the history of contact 7 in a way that no repair can put right; the code of the refusal."""


def clock_ran_ahead(ingress: Ingress, route: RouteFacts) -> str:
    """A selection by which an unnumbered event is represented; any numbered one of today in its place would lose that."""
    moment = clock.now()

    def event(ordinal: int, hours: int) -> Event:
        created = moment + timedelta(hours=hours)
        columns = {
            "enqueue_ordinal": ordinal,
            "created_date": created,
            "pack_incarnation": ingress.pack.incarnation,
            "account": "main",
        }
        return event_row(route, source_id="7", **columns)

    event(0, 1)
    work_row(event(1001, 2), run_after=moment)
    event(1002, 0)
    Namespace.objects.update(next_enqueue_ordinal=1003)
    return "unsafe_replacement"


def two_successors(ingress: Ingress, route: RouteFacts) -> str:
    ingress.admit(change(7))
    WorkItem.objects.filter(source_lane="contact:7").update(claimed_at=clock.now())
    queue_twice(ingress, 7)
    WorkItem.objects.filter(source_lane="contact:7").update(lane_ordinal=F("lane_ordinal") - 1)
    return "ambiguous"


def no_snapshot(ingress: Ingress, route: RouteFacts) -> str:
    event_row(route, source_id="7", pack_incarnation=ingress.pack.incarnation, route_snapshot=None)
    return "no_route_snapshot"


def broken_snapshot(ingress: Ingress, route: RouteFacts) -> str:
    event_row(route, source_id="7", pack_incarnation=ingress.pack.incarnation, route_snapshot="{}")
    return "no_route_snapshot"


def tombstone(ingress: Ingress, route: RouteFacts) -> str:
    event_row(route, source_id="7", pack_incarnation=ingress.pack.incarnation, erasure_id=1)
    return "erased"


def pack_is_gone(ingress: Ingress, route: RouteFacts) -> str:
    event_row(route, source_id="7", pack_incarnation=ingress.pack.incarnation, pack_id=4711)
    return "pack_changed"


@pytest.mark.parametrize(
    "spoil",
    [clock_ran_ahead, two_successors, no_snapshot, broken_snapshot, tombstone, pack_is_gone],
    ids=lambda spoil: spoil.__name__,
)
def test_a_projection_that_cannot_be_repaired_is_refused_and_the_others_are_repaired(spoil: Spoil) -> None:
    ingress = open_ingress()
    route = ingress.route()
    ingress.admit(change(1), change(2))
    WorkItem.objects.all().delete()
    code = spoil(ingress, route)
    before = list(WorkItem.objects.order_by("id").values())
    expected = repair(dry_run=True)
    assert list(WorkItem.objects.order_by("id").values()) == before
    assert expected.missing_tasks == 2
    assert [one.code for one in expected.refused] == [code]
    assert repair() == expected
    assert (states(1), states(2)) == (["pending"], ["pending"])
    assert list(WorkItem.objects.order_by("id").values())[: len(before)] == before
    found, answer = commands.run("repair")
    assert (found, answer["missing_tasks"]) == (1, 0)
    assert answer["refused"] == [{"id": one.id, "code": one.code, "reason": one.reason} for one in expected.refused]


def test_a_successor_that_may_be_one_of_two_is_not_handed_off_and_the_others_are() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7), change(8))
    WorkItem.objects.update(claimed_at=clock.now())
    queue_twice(ingress, 7)
    ingress.admit(change(8))
    ended = {"state": "processed", "terminal_at": clock.now(), "projection_active_key": None}
    WorkItem.objects.filter(projection_active_key__isnull=False).update(**ended)
    expected = repair(dry_run=True)
    assert (expected.handoffs, [one.code for one in expected.refused]) == (1, ["ambiguous"] * 2)
    assert repair() == expected
    assert (states(7), states(8)) == (["processed", "blocked", "blocked"], ["processed", "pending"])


@pytest.mark.parametrize(
    ("contact", "lane", "route", "code"),
    [
        ("2", "x" * 700, {"mode": "per_event", "target_lane": "invoice:{lane}"}, "unfit"),
        ("ß" * 400, "lane", {"source_id_case": "fold"}, "unfit"),
        ("2", "ß" * 400, {"source_id_case": "fold"}, "unfit"),
    ],
)
def test_a_fact_that_a_route_cannot_take_is_refused_and_the_others_are_routed(
    contact: str, lane: str, route: dict[str, Any], code: str
) -> None:
    ingress = open_ingress()
    ingress.admit(change(1), change(contact, lane=lane), change(3))
    ingress.route(**route)
    ingress.route("second", mode="per_event", kind="contact.copied")
    swept = sweep()
    fact = Event.objects.get(source_id=contact, route_id=None)
    assert (swept.copies, [(one.id, one.code) for one in swept.refused]) == (5, [(str(fact.id), code)])
    assert "route contact" in swept.refused[0].reason
    assert len(states(1)) == 2
    assert sweep().copies == 0


def test_a_fact_whose_projection_refuses_it_stays_unrouted_and_the_others_are_routed() -> None:
    ingress = open_ingress()
    ingress.admit(change(1), change(7), change(3))
    clock_ran_ahead(ingress, ingress.route())
    Event.objects.filter(enqueue_ordinal=1002).delete()
    swept = sweep()
    fact = Event.objects.get(source_id="7", route_id=None)
    assert (swept.copies, [(one.id, one.code) for one in swept.refused]) == (2, [(str(fact.id), "unsafe_replacement")])
    assert (states(1), states(7), states(3)) == (["pending"], ["pending"], ["pending"])


def test_a_sweep_routes_by_what_is_in_force_when_it_admits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version is published after the routes were read."""
    ingress = open_ingress()
    ingress.admit(change(1), change(2))
    ingress.route()
    publish = [lambda: ingress.route(version=2, masks=("$.note",))]

    def read_late(*ids: Any, **options: Any) -> Any:
        if publish:
            publish.pop()()
        return stored_events(*ids, **options)

    monkeypatch.setattr("connectors.routing.sweep.stored_events", read_late)
    assert sweep().copies == 2
    assert set(Event.objects.exclude(route_id=None).values_list("route_version", flat=True)) == {2}


def test_a_sweep_copies_in_transactions_of_a_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.admit(*[change(n, note="x" * 1000) for n in range(5)])
    ingress.route()
    ingress.route("second", kind="contact.copied")
    monkeypatch.setattr("connectors.routing.sweep.UNIT_BYTES", 5000)
    units: list[int] = []

    def note(lock: Any, events: Any) -> Any:
        units.append(len(events))
        return admit(lock, events)

    monkeypatch.setattr("connectors.routing.sweep.admit", note)
    assert sweep().copies == 10
    assert units == [4, 4, 2], "two facts of about 1,100 bytes, each for two routes"
