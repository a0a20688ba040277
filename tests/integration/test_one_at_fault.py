"""One row that a fault has broken keeps nobody else from his turn: it fails alone, and is named."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from projection import clock
from projection.apart import run_apart
from projection.audit import audit
from projection.models import Event, WorkItem
from projection.rescue import rescue
from projection.worker import drain_claims
from tests.deliveries import Ingress, change, generations, open_ingress, states
from tests.flows_of_tests import recording
from tests.workers_by_hand import ByHand, let_leases_run_out

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

    done = run_apart("test", range(5), lambda parts: unit(list(parts)), lambda part, error: faults.append((part, str(error))))
    assert [part for parts in done for part in parts] == [part for part in range(5) if part not in bad]
    assert faults == [(part, f"bad [{part}]") for part in bad]
    assert len(calls) == 1 or bad


def test_a_lost_connection_is_nobody_s_fault(database: None) -> None:
    def unit(_: object) -> None:
        raise OperationalError(2006, "Server has gone away")

    with pytest.raises(OperationalError):
        run_apart("test", [1, 2], unit, lambda *_: pytest.fail("no part is at fault"))


def test_a_lease_that_cannot_be_ended_keeps_no_other_from_its_rescue(capsys: pytest.CaptureFixture[str]) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7), change(8))
    with recording():
        assert len(ByHand().claim()) == 2
        queue_twice(ingress, 7)
        WorkItem.objects.filter(state="processing").update(max_attempts=1)
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
    assert (lost.state, lost.last_error) == ("dead", f"event {lost.event_id}, which it selects, is not retained; run `audit`")
    assert {found.invariant for found in audit().violations} == {"selected_event"}
