"""What an operator does and the entry that says so are one transaction: never one of them without the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from connectors import audit_log
from connectors.models import AuditEntry, Receipt
from connectors.operations import bulk_jobs, verbs
from connectors.operations.lane_names import find_lanes
from projection.database import clock
from projection.job_models import Job
from projection.limits.circuit_breaker import key_of
from projection.models import Destination, Event, LaneHold, WorkItem
from projection.states import State
from tests.support import rows as written
from tests.support.deliveries import change
from tests.support.flows_of_tests import recording
from tests.support.jobs_by_hand import dead_letters, fixed, start
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")

WHO: dict[str, Any] = {"actor": "ann", "reason": "as agreed"}
TOUCHED = (Destination, Event, Job, LaneHold, Receipt, WorkItem)


@dataclass
class Site:
    """Dead letters (one discarded), pending and held work, a parked destination,
    a quarantined receipt, two jobs."""

    running: int
    paused: int
    discarded: str

    @staticmethod
    def work(state: str) -> str:
        return str(WorkItem.objects.filter(state=state, discarded_at=None).order_by("id")[0].work_id)


@pytest.fixture
def site() -> Site:
    with recording() as seen:
        ingress = dead_letters(seen, 1)
        ingress.admit(change(2))
        waiting = ByHand().claim_one()
        report(waiting, State.RETRY, outcome="retry", error="no", delay_ms=3_600_000)
        ingress.admit(change(3), change(4))
        verbs.hold(find_lanes("contact:4")[0], **WHO)
        running, paused = fixed(start()), fixed(start())
        bulk_jobs.pause(paused.id, **WHO)
    discarded = written.work_row(written.event_row(written.PAGES), "dead", discarded_at=clock.now())
    until = clock.now() + timedelta(hours=1)
    parked = {"state": "open", "failures": 9, "openings": 1, "last_work_id": "", "last_error": "", "parked_at": clock.now()}
    Destination.objects.create(name_key=key_of("api"), name="api", parked_until=until, **parked)
    ingress.send(change(5))
    Receipt.objects.filter(state="pending").update(state="quarantined", attempts=5)
    return Site(running.id, paused.id, discarded.work_id)


VERBS: dict[str, Callable[[Site], object]] = {
    "work.replay": lambda site: verbs.replay([site.work("dead")], **WHO),
    "work.discard": lambda site: verbs.discard(site.work("dead"), **WHO),
    "work.restore": lambda site: verbs.restore([site.discarded], **WHO),
    "work.cancel": lambda site: verbs.cancel(site.work("pending"), **WHO),
    "work.retry_now": lambda site: verbs.retry_now(site.work("retry"), **WHO),
    "lane.hold": lambda _: verbs.hold(find_lanes("contact:3")[0], **WHO),
    "lane.release": lambda _: verbs.release(find_lanes("contact:4")[0], **WHO),
    "destination.retry": lambda _: verbs.try_destination("api", **WHO),
    "receipt.reroute": lambda _: verbs.reroute(Receipt.objects.get(state="quarantined").id, **WHO),
    "job.pause": lambda site: bulk_jobs.pause(site.running, **WHO),
    "job.resume": lambda site: bulk_jobs.resume(site.paused, **WHO),
    "job.cancel": lambda site: bulk_jobs.cancel(site.running, **WHO),
    "job.throttle": lambda site: bulk_jobs.throttle(site.running, 7, **WHO),
}


def rows() -> list[Any]:
    return [list(model._default_manager.order_by("pk").values()) for model in TOUCHED]


@pytest.mark.parametrize("action", VERBS)
def test_a_verb_whose_entry_cannot_be_written_is_not_done(site: Site, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, entries = rows(), AuditEntry.objects.count()

    def refused(*_: object) -> None:
        raise RuntimeError("the trail cannot be written")

    with monkeypatch.context() as patch:
        patch.setattr(audit_log, "_entry", refused)
        with pytest.raises(RuntimeError, match="trail"):
            VERBS[action](site)
    assert (rows(), AuditEntry.objects.count()) == (before, entries)

    VERBS[action](site)
    assert rows() != before
    (entry,) = AuditEntry.objects.order_by("id")[entries:]
    assert (entry.action, entry.actor, entry.reason, entry.count) == (action, "ann", "as agreed", 1)
