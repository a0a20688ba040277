"""A database with something on every page of the console, also with hostile text in every place that a stranger can write to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from django.contrib.auth.models import Group, User
from django.test import Client

from connectors import models
from connectors.operations.work_filters import WorkFilter
from projection import flows, identity
from projection.admission import activation
from projection.database.clock import now
from projection.facts import RouteFacts
from projection.job_models import Job, JobItem
from projection.models import Destination, LaneHold, RateBucket, Worker, WorkItem
from projection.states import State
from tests.support import factories, jobs_by_hand, rows

HOSTILE = "\"><svg onload=alert(1)><img src=x onerror=alert(2)>\u202e\u2066gnp.'exe{{7*7}}"
"""Markup and script, with a change of writing direction and template syntax."""
BIG = "9007199254740993"
PASSWORD = "a long enough password"


@dataclass(frozen=True)
class World:
    """What a page needs in its URL."""

    receipt: int
    unverified: int
    event: int
    work: str
    dead: str
    lane: str
    record: int
    route: int
    job: int = 0
    preview: int = 0
    endpoint: int = 0
    connection: int = 0
    source: str = ""
    entry: int = 0

    @property
    def paths(self) -> dict[str, str]:
        """The path of each page, by a name."""
        return {
            "overview": "/admin/",
            "trace": "/admin/trace/",
            "trace-found": f"/admin/trace/?q={self.dead}",
            "receipts": "/admin/receipts/",
            "receipt": f"/admin/receipts/{self.receipt}/",
            "unverified": "/admin/unverified/",
            "unverified-delivery": f"/admin/unverified/{self.unverified}/",
            "events": "/admin/events/",
            "event": f"/admin/events/{self.event}/",
            "generations": "/admin/generations/",
            "generation": f"/admin/generations/{self.work}/",
            "comparison": f"/admin/generations/{self.work}/compare/",
            "lanes": "/admin/lanes/",
            "lane": f"/admin/lanes/{self.lane}/",
            "dead-letters": "/admin/dead-letters/",
            "dead-letter": f"/admin/dead-letters/{self.dead}/",
            "preview": f"/admin/dead-letters/previews/{self.preview}/",
            "replays": "/admin/replays/",
            "job": f"/admin/replays/{self.job}/",
            "sources": "/admin/sources/",
            "source": f"/admin/sources/one/?{urlencode({'namespace': 'default', 'type': 'contact', 'id': self.source})}",
            "records": "/admin/records/",
            "record": f"/admin/records/{self.record}/",
            "packs": "/admin/packs/",
            "endpoints": "/admin/endpoints/",
            "endpoint-new": "/admin/endpoints/new/",
            "endpoint": f"/admin/endpoints/{self.endpoint}/",
            "endpoint-connect": f"/admin/endpoints/{self.endpoint}/connect/",
            "connections": "/admin/connections/",
            "routes": "/admin/routes/",
            "route-publish": f"/admin/routes/publish/?from={self.route}",
            "route-publish-text": f"/admin/routes/publish/?as=text&from={self.route}",
            "route": f"/admin/routes/{self.route}/",
            "destinations": "/admin/destinations/",
            "pauses": "/admin/pauses/",
            "workers": "/admin/workers/",
            "audit": "/admin/audit/",
            "words": "/admin/help/words/",
            "keys": "/admin/help/keys/",
            "audit-entry": f"/admin/audit/{self.entry}/",
        }


LISTS = (
    "receipts",
    "unverified",
    "events",
    "generations",
    "lanes",
    "dead-letters",
    "replays",
    "sources",
    "records",
    "packs",
    "endpoints",
    "connections",
    "routes",
    "destinations",
    "pauses",
    "workers",
    "audit",
)


def build(text: str = "contact.changed", *, masks: tuple[str, ...] = ()) -> World:
    """Rows of every kind, `text` wherever a provider or a person may write. Activates the protocol."""
    activation.activate("test")
    activation.forget()
    pack = factories.install("generic", version=text[:60])
    endpoint = factories.endpoint(pack)
    facts = factories.route(pack, text[:90], kind=text, mode="projection", masks=masks, settle=5.0)
    moment = now()
    payload = json.dumps({"id": text, text: text, "email": "ada@example.com"}, ensure_ascii=False)[:-1] + f',"n":{BIG},"f":1.10}}'
    receipt = _receipt(pack, payload, text)
    for state in ("pending", "rejected", "quarantined", "conflict"):
        factories.receipt(pack, "{}", state=state, last_error=None if state == "pending" else text)
    unverified = _unverified(pack, payload, text)
    dead = _dead(facts, receipt.id, payload, text)
    pending = _waiting(facts, text)
    record = _record(facts, text)
    LaneHold.objects.create(
        namespace=pack.namespace, lane_key=pending.lane_key, lane=text, reason=text, held_by=text[:100], held_at=moment
    )
    connection = models.Connection.objects.create(
        namespace=pack.namespace, name=text[:90], url=f"https://example.com/{text}", secrets="SECRET", created_at=moment
    )
    entry = models.AuditEntry.objects.create(
        at=moment, actor=text[:100], action="lane.hold", target=text, reason=text, detail=json.dumps({text: text, "until": None})
    )
    for kind in ("router", "worker"):
        worker(kind, host=text[:100])
    stops(text)
    return World(
        receipt=receipt.id,
        unverified=unverified.id,
        event=dead.event_id,
        work=pending.work_id,
        dead=dead.work_id,
        lane=str(pending.lane_key),
        record=record.id,
        route=facts.id,
        job=job(dead, text).id,
        preview=jobs_by_hand.preview(chosen=WorkFilter(error=text), actor=text[:100]).id,
        endpoint=endpoint.id,
        connection=connection.id,
        source=text,
        entry=entry.id,
    )


def stops(text: str) -> None:
    """A paused namespace, a destination that is away, one that is well again, and a limit that is used up."""
    moment, later = now(), now() + timedelta(hours=1)
    models.Namespace.objects.create(name="stopped", paused_at=moment, paused_by=text[:100], pause_reason=text, resume_at=later)
    for state, until in (("open", later), ("closed", None)):
        Destination.objects.create(
            name_key=identity.digest("destination", state),
            name=text[:200],
            state=state,
            failures=5,
            openings=1,
            parked_at=moment,
            parked_until=until,
            last_error=text,
        )
    RateBucket.objects.create(
        limit_key=identity.digest("limit", text),
        namespace="default",
        name=text[:100],
        rate=100,
        per_microseconds=10_000_000,
        declared_at=moment,
        next_slot_at=later,
    )


def job(dead: WorkItem, text: str, **columns: object) -> Job:
    """A paused replay job: one item that was refused, one that was replayed by what is not kept, one that waits."""
    moment = now()
    values = {"kind": "replay", "state": "paused", "rate": 200, "total": 3, "done": 1, "refused": 1}
    filter = json.dumps({"error": text, "source": text})
    made = Job.objects.create(
        **{**values, "filter": filter, "reason": text, "actor": text[:100], "created_date": moment, "fixed_at": moment, **columns}
    )
    for place, (state, reason, replay) in enumerate(
        (("refused", text, None), ("done", None, "csp:" + "e" * 64), ("waiting", None, None))
    ):
        JobItem.objects.create(
            job_id=made.id,
            place=place,
            work_item_id=dead.id + place,
            work_id=dead.work_id if place == 0 else f"csp:{place:064}",
            namespace=dead.namespace,
            state=state,
            code="active_generation" if reason else "",
            reason=reason,
            replay_work_id=replay,
        )
    return made


def _receipt(pack: models.Pack, payload: str, text: str) -> models.Receipt:
    """A routed receipt with one event and one rejected item."""
    return factories.receipt(
        pack,
        f"[{payload}]",
        endpoint_id=models.Endpoint.objects.get(pack_id=pack.id).id,
        delivery_id=text,
        headers={"content-type": text, text: "x"},
        url=f"https://hooks.example.com/?{text}",
        state="routed",
        routed_at=now(),
        item_count=2,
        event_count=1,
        duplicate_count=0,
        conflict_count=0,
        rejected_count=1,
        verdicts=json.dumps([{"item": 2, "code": "unreadable", "reason": text}]),
        last_error=text,
    )


def _unverified(pack: models.Pack, payload: str, text: str) -> models.UnverifiedDelivery:
    return models.UnverifiedDelivery.objects.create(
        endpoint_id=models.Endpoint.objects.get(pack_id=pack.id).id,
        body=payload.encode() + b"\xff\x00",
        body_sha256="0" * 64,
        headers=json.dumps({text: text}),
        url=f"https://hooks.example.com/?{text}",
        reason=text,
        received_at=now(),
    )


def _record(facts: RouteFacts, text: str) -> models.Record:
    """A live record that was merged, with a number that no float holds."""
    return models.Record.objects.create(
        record_key="0" * 64,
        namespace=facts.namespace,
        pack_name=facts.pack_name,
        event_kind=facts.event_kind,
        source_type="contact",
        source_id=text,
        properties=json.dumps({text: {"value": text, "ordinal": 1}, "email": {"value": "ada@example.com", "ordinal": 2}})[:-1]
        + f',"n":{{"value":{BIG},"ordinal":3}}}}',
        merged_into=text,
        event_count=3,
        last_ordinal=3,
        created_at=now(),
        updated_at=now(),
    )


def _dead(facts: RouteFacts, receipt_id: int, payload: str, text: str) -> WorkItem:
    """A generation of three inputs that died in its second attempt."""
    for _ in range(2):
        rows.event_row(facts, source_id=text)
    event = rows.event_row(
        facts, source_id=text, receipt_id=receipt_id, payload=payload, delivery_id=text, provider_kind=text[:180]
    )
    item = rows.work_row(event, State.DEAD, last_error=f"ValueError: {text}\nsecond line", error_fingerprint="f" * 64, attempts=2)
    for attempt, outcome in ((1, "retry"), (2, "dead")):
        rows.failure_row(item, f"ValueError: {text}", attempt=attempt, outcome=outcome, delay_ms=5000, lease_owner=text[:100])
    return item


def _waiting(facts: RouteFacts, text: str) -> WorkItem:
    """An active generation with its queued successor, and one item of each other state on sources of their own."""
    source = f"waiting {text}"
    active = rows.work_row(rows.event_row(facts, source_id=source), State.RETRY, last_error=text)
    rows.work_row(rows.event_row(facts, source_id=source), State.BLOCKED)
    for state in (State.PENDING, State.PROCESSING, State.PROCESSED, State.SKIPPED, State.CANCELLED):
        rows.work_row(rows.event_row(facts, source_id=f"{state} {text}"), state)
    rows.event_row(None, source_id=f"unrouted {text}")
    return active


def worker(kind: str, *, host: str = "host-1", seen_ago: timedelta = timedelta(0)) -> Worker:
    """A process with a heartbeat `seen_ago` ago."""
    moment = now() - seen_ago
    return Worker.objects.create(
        id=f"{kind}-{Worker.objects.count()}",
        kind=kind,
        host=host,
        pid=4711,
        code_version="1",
        flows_hash=flows.flows_hash(),
        started_at=moment,
        seen_at=moment,
    )


def user(group: str | None = "operator", *, name: str | None = None, is_staff: bool = True) -> User:
    """A person of one of the console's groups (None: of none)."""
    made = User.objects.create_user(name or group or "nobody", password=PASSWORD, is_staff=is_staff)
    if group is not None:
        made.groups.add(Group.objects.get(name=group))
    return made


def client(group: str | None = "operator", *, enforce_csrf_checks: bool = False) -> Client:
    """A browser of that person, logged in."""
    made = Client(enforce_csrf_checks=enforce_csrf_checks)
    made.force_login(user(group))
    return made
