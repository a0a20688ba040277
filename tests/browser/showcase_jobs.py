"""For the pictures: a day of deaths, what was replayed and discarded of them, and bulk jobs in three states."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from connectors import models
from connectors.operations.work_filters import WorkFilter
from projection import identity
from projection.job_models import Job, JobItem
from projection.limits import circuit_breaker
from projection.models import Destination, RateBucket, WorkItem
from projection.states import State
from tests.support import jobs_by_hand, rows

if TYPE_CHECKING:
    from tests.browser.showcase import Hour

OUTAGE = "ConnectTimeout: crm.internal did not answer within 10 s"
CURRENCY = "HTTP 422 from billing: unknown currency 'EUR '"
PAST = (
    (OUTAGE, {3: 9, 4: 14, 5: 11, 6: 2, 15: 3}),
    (CURRENCY, {1: 2, 2: 1, 7: 1, 9: 2, 12: 1, 18: 2, 21: 1}),
    ("ValueError: invalid literal for int() with base 10: '12,50'", {8: 1, 16: 2, 17: 5, 22: 1}),
    ("HTTP 401 from warehouse: token expired", {11: 16, 12: 7}),
)
"""Error → deaths by hours ago."""


def show_jobs(hour: Hour) -> tuple[int, int]:
    """Ids of a running job and of a preview."""
    by_error = {error: _deaths(hour, error, counts) for error, counts in PAST}
    expired = by_error["HTTP 401 from warehouse: token expired"]
    for item in expired[:20]:
        replay = rows.replay_row(item, State.PROCESSED)
        WorkItem.objects.filter(id=replay.id).update(created_date=hour.at(40), terminal_at=hour.at(39))
    WorkItem.objects.filter(id__in=[item.id for item in by_error[CURRENCY][-2:]]).update(
        discarded_at=hour.at(200), discarded_by="grace", discard_reason="test order"
    )
    _ended(hour, expired)
    _job(
        hour,
        "discard",
        {"error": "invalid literal"},
        "spreadsheet upload of last week, entered by hand since",
        "grace",
        310,
        {"state": "cancelled", "finished_at": hour.at(308), "total": 40, "done": 12, "skipped": 28},
    )
    _stops(hour)
    running = _running(hour, by_error[OUTAGE])
    preview = jobs_by_hand.preview(chosen=WorkFilter(error="unknown currency", unreplayed=True), actor="ada")
    return running.id, preview.id


def _stops(hour: Hour) -> None:
    """A route that somebody paused, a warehouse that is away, and a quota that is used up."""
    models.Route.objects.filter(route_key="repository").update(
        paused_at=hour.at(26), paused_by="grace", pause_reason="ci.example.com moves to another host", resume_at=hour.at(-94)
    )
    for name, state, failures, until, error in (
        ("warehouse", "open", 9, hour.at(-3), "HTTP 503 from warehouse: maintenance"),
        ("default/ci", "failing", 2, None, "ConnectTimeout: ci.example.com did not answer within 5 s"),
        ("billing", "closed", 0, None, "HTTP 429 from billing: slow down"),
    ):
        Destination.objects.create(
            name_key=circuit_breaker.key_of(name),
            name=name,
            state=state,
            failures=failures,
            openings=3,
            parked_at=hour.at(12) if until else None,
            parked_until=until,
            last_error=error,
        )
    for name, rate, ahead in (("hubspot-api", 100, -0.1), ("billing", 5, 1)):
        RateBucket.objects.create(
            limit_key=identity.digest("limit", name),
            namespace="default",
            name=name,
            rate=rate,
            per_microseconds=10_000_000,
            declared_at=hour.at(900),
            next_slot_at=hour.at(ahead),
        )


def _deaths(hour: Hour, error: str, counts: dict[int, int]) -> list[WorkItem]:
    facts = hour.orders if "billing" in error else hour.contacts
    name = "order" if facts is hour.orders else "contact"
    made = []
    for hours, count in counts.items():
        for number in range(count):
            source = f"{name}:{63_000 + len(made) + hash_of(error)}"
            made.append(hour.dead(facts, source, hours * 60 + 5 + number * 50 / count, error))
    return made


def hash_of(error: str) -> int:
    return int(identity.sha256_text(error)[:3], 16) * 10


def _job(  # one line of the list
    hour: Hour, kind: str, filter: dict[str, str], reason: str, actor: str, ago: float, columns: dict[str, object]
) -> Job:
    made: datetime = hour.at(ago)
    return Job.objects.create(
        **{
            "kind": kind,
            "filter": json.dumps(filter),
            "reason": reason,
            "actor": actor,
            "rate": 200,
            "created_date": made,
            "fixed_at": made,
            **columns,
        }
    )


def _ended(hour: Hour, dead: list[WorkItem]) -> None:
    columns = {"state": "finished", "finished_at": hour.at(39), "total": 23, "done": 20, "refused": 3}
    job = _job(hour, "replay", {"error": "token expired", "route": "contact"}, "the token was renewed", "ada", 41, columns)
    _items(job, dead, done=20, refused=3)


def _running(hour: Hour, dead: list[WorkItem]) -> Job:
    columns: dict[str, object] = {
        "state": "running",
        "total": len(dead),
        "done": 21,
        "refused": 2,
        "deferred": 3,
        "next_step_at": hour.now,
    }
    filter = {"error": "crm.internal", "since": hour.at(900).isoformat()}
    job = _job(hour, "replay", filter, "crm.internal is back, see INC-2291", "ada", 1, columns)
    for number, item in enumerate(dead[2:23]):
        state = State.PROCESSED if number < 12 else State.PROCESSING if number < 15 else State.PENDING
        rows.replay_row(item, state)
    _items(job, dead, refused=2, done=21, deferred=3)
    return job


def _items(job: Job, dead: list[WorkItem], **counts: int) -> None:
    states = [state for state, count in counts.items() for _ in range(count)]
    states += ["waiting"] * (len(dead) - len(states))
    made = dict(WorkItem.objects.exclude(replay_of_work_id=None).values_list("replay_of_work_id", "work_id"))
    for place, (item, state) in enumerate(zip(dead, states, strict=True)):
        told = {
            "refused": ("active_generation", "csp:77e1…02ab is already open for the same source; replay again after it has ended"),
            "deferred": (
                "same_source",
                "waits for an earlier one of the same record; replayed after that has ended",
            ),
        }.get(state, ("", None))
        JobItem.objects.create(
            job_id=job.id,
            place=place,
            work_item_id=item.id,
            work_id=item.work_id,
            namespace=item.namespace,
            state=state,
            code=told[0],
            reason=told[1],
            replay_work_id=made.get(item.work_id) if state == "done" else None,
        )
