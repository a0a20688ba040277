"""Work that may not be claimed costs a claim nothing, however much of it waits: it is set aside, once."""

from __future__ import annotations

import pytest

from connectors.models import Route
from projection.database import clock
from projection.execution.worker import drain_claims
from projection.limits import availability, queue_classes
from projection.models import WorkItem
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.scale import size
from tests.support.server_work import server_work
from tests.support.workers_by_hand import ByHand, report

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale]

BACKLOG = size(10_000, 200_000)
FEW_ROWS = 200
A_CLAIM_AT_MOST = 8 * availability.LOOKS * availability.LOOKED_AT
"""Each item that is set aside is found by index, read, found by key and moved in two indexes."""


def paused_backlog() -> Ingress:
    """One class with a paused route's items, all of them older than what comes later."""
    ingress = open_ingress()
    paused = ingress.route("paused", mode="per_event", on=("paused",))
    ingress.route("open", mode="per_event", on=("changed",))
    ingress.admit(change(1, kind="paused"))
    item = WorkItem.objects.get()
    copy_rows(
        item, BACKLOG, WorkId=hashed("paused"), LaneKey=hashed("paused"), RunAfter="UTC_TIMESTAMP(6) - INTERVAL 1 + n MICROSECOND"
    )
    Route.objects.filter(id=paused.id).update(paused_at=clock.now())
    ingress.admit(*[change(n) for n in range(2, 12)])
    return ingress


def test_a_claim_walks_over_blocked_work_once_and_never_again() -> None:
    paused_backlog()
    with recording():
        worker, taken = ByHand(), []
        for _ in range(2 + BACKLOG // (availability.LOOKS * availability.LOOKED_AT)):
            with server_work() as work:
                taken += worker.claim()
            assert work.rows_read <= A_CLAIM_AT_MOST
        assert len(taken) == 10
        with server_work() as work:
            assert worker.claim() == []
        assert work.rows_read <= FEW_ROWS


def test_what_was_set_aside_runs_when_its_route_is_open_again_in_the_share_of_its_class() -> None:
    ingress = paused_backlog()
    with recording():
        worker = ByHand()
        for attempt in (one for _ in range(2 + BACKLOG // 2000) for one in worker.claim()):
            report(attempt)
        Route.objects.update(paused_at=None)
        ingress.route("bulk", mode="per_event", queue_class="bulk", on=("bulk",))
        ingress.admit(*[change(n, kind="bulk") for n in range(1000, 1020)])
        keys = [one.claimed.route.key for one in worker.claim(9)]
    assert sorted(keys) == ["bulk"] * 3 + ["paused"] * 6


def test_there_are_only_so_many_classes_of_set_aside_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_classes, "MOST_ASIDE", 3)
    ingress = open_ingress()
    for number in range(6):
        ingress.route(f"r{number}", mode="per_event", on=(f"k{number}",))
        ingress.admit(change(number, kind=f"k{number}"))
    Route.objects.update(paused_at=clock.now())
    ingress.route("open", mode="per_event")
    ingress.admit(change(7))
    with recording():
        assert len(ByHand().claim()) == 1
        assert ByHand().claim() == []
        assert ByHand().claim() == []
    classes = set(WorkItem.objects.filter(state="pending").values_list("queue_class", flat=True))
    assert len([name for name in classes if queue_classes.is_aside(name)]) == 3


def test_who_runs_all_that_is_due_does_not_stop_behind_blocked_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of it than one claim sets aside lies ahead of what is open."""
    monkeypatch.setattr(availability, "LOOKED_AT", 2)
    monkeypatch.setattr(availability, "LOOKS", 1)
    ingress = open_ingress()
    paused = ingress.route("paused", mode="per_event", on=("paused",))
    ingress.route("open", mode="per_event", on=("changed",))
    ingress.admit(*[change(n, kind="paused") for n in range(7)], change(8))
    Route.objects.filter(id=paused.id).update(paused_at=clock.now())
    with recording() as seen:
        assert drain_claims() == 1
    assert seen.sources == ["8"]
