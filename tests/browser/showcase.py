"""A busy hour for the pictures: contacts, repositories and orders, with an outage, a poisoned record and a held lane."""

from __future__ import annotations

import itertools
import json
import random
from datetime import datetime, timedelta
from typing import Any

from connectors import models, secrets
from projection import identity
from projection.admission import activation
from projection.database.clock import now
from projection.facts import RouteFacts
from projection.models import Event, LaneHold, Worker, WorkFailure, WorkItem
from projection.states import State
from tests.browser import showcase_jobs
from tests.support import console_world, factories, rows
from tests.support.console_world import World

ERRORS = (
    ("ConnectTimeout: crm.internal did not answer within 10 s", 7),
    ("HTTP 422 from billing: unknown currency 'EUR '", 4),
    ("KeyError: 'account_id'", 2),
)
NAMES = ("Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Tony Hoare", "Frances Allen", "Niklaus Wirth")


class Hour:
    """Rows of the last hour, made in order; `at` gives each its minute."""

    def __init__(self) -> None:
        self.now = now()
        self.random = random.Random(7)
        self.numbers = itertools.count(28_841_000_117)
        self.contacts, self.repositories, self.orders = _routes()
        self.pack = models.Pack.objects.get(name="hubspot")
        self.endpoint = models.Endpoint.objects.get(slug="crm")

    def at(self, minutes_ago: float) -> datetime:
        return self.now - timedelta(minutes=minutes_ago)

    def event(self, facts: RouteFacts, source: str, minutes_ago: float, **columns: Any) -> Event:
        kind, _, source_id = source.partition(":")
        number = next(self.numbers)
        payload = json.dumps(
            {
                "eventId": number,
                "subscriptionType": "contact.propertyChange",
                "objectId": int(source_id) if source_id.isdigit() else source_id,
                "propertyName": self.random.choice(["lifecyclestage", "phone", "company", "jobtitle"]),
                "propertyValue": self.random.choice(["customer", "lead", "+44 20 7946 0018", "Analytical Engines Ltd"]),
                "occurredAt": int(self.at(minutes_ago).timestamp() * 1000),
                "attemptNumber": 0,
            }
        )
        receipt = columns.pop("receipt_id", None) or self.receipt(f"[{payload}]", minutes_ago, delivery_id=str(number)).id
        return rows.event_row(
            facts,
            source_type=kind,
            source_id=source_id,
            payload=payload,
            receipt_id=receipt,
            delivery_id=f"{number}/{kind}.propertyChange/{source_id}",
            provider_kind=columns.pop("provider_kind", f"{kind}.propertyChange"),
            provider_timestamp=self.at(minutes_ago + 0.02),
            created_date=self.at(minutes_ago),
            **columns,
        )

    def receipt(self, body: str, minutes_ago: float, state: str = "routed", **columns: Any) -> models.Receipt:
        routed = (
            {"routed_at": self.at(minutes_ago), "item_count": 1, "event_count": 1, "duplicate_count": 0}
            if state == "routed"
            else {}
        )
        headers = {"content-type": "application/json", "user-agent": "HubSpot Webhooks/1.0"}
        columns.setdefault("endpoint_id", self.endpoint.id)
        return factories.receipt(
            self.pack, body, received_at=self.at(minutes_ago), state=state, headers=headers, **{**routed, **columns}
        )

    def done(self, facts: RouteFacts, source: str, minutes_ago: float, state: str = State.PROCESSED, inputs: int = 1) -> WorkItem:
        for place in range(inputs - 1):
            self.event(facts, source, minutes_ago + 0.2 * (inputs - place))
        event = self.event(facts, source, minutes_ago)
        ended = max(minutes_ago - self.random.random(), 0.01)
        claimed = self.at((minutes_ago + 2 * ended) / 3)
        return rows.work_row(
            event,
            state,
            created_date=event.created_date,
            run_after=event.created_date,
            terminal_at=self.at(ended),
            claimed_at=claimed,
            first_claimed_at=claimed,
        )

    def dead(self, facts: RouteFacts, source: str, minutes_ago: float, error: str) -> WorkItem:
        """Died so many minutes ago in its fourth attempt; admitted a few minutes before."""
        fingerprint = identity.sha256_text(error)
        item = self.done(facts, source, minutes_ago + 3.6, State.DEAD, inputs=self.random.choice([1, 3, 5]))
        WorkItem.objects.filter(id=item.id).update(
            last_error=error,
            error_fingerprint=fingerprint,
            attempts=4,
            max_attempts=4,
            first_claimed_at=self.at(minutes_ago + 3.5),
            claimed_at=self.at(minutes_ago + 0.17),
            terminal_at=self.at(minutes_ago),
        )
        for attempt, ago in enumerate((3.33, 2.9, 1.9, 0), start=1):
            self.failure(item, error, attempt, "dead" if attempt == 4 else "retry", minutes_ago + ago)
        return item

    def failure(self, item: WorkItem, error: str, attempt: int, outcome: str, minutes_ago: float) -> WorkFailure:
        delay = None if outcome == "dead" else 5000 * 3 ** (attempt - 1)
        return rows.failure_row(
            item,
            error,
            attempt=attempt,
            outcome=outcome,
            delay_ms=delay,
            lease_owner="app-1:4711",
            created_date=self.at(minutes_ago),
        )


def _routes() -> tuple[RouteFacts, RouteFacts, RouteFacts]:
    hubspot, github, generic = (factories.install(name) for name in ("hubspot", "github", "generic"))
    factories.endpoint(hubspot, "crm")
    factories.endpoint(github, "org", ("one", "two"))
    factories.endpoint(generic, "shop", ())
    return (
        factories.route(
            hubspot,
            "contact",
            kind="contact.changed",
            mode="projection",
            flow="record_table",
            settle=5.0,
            on=("contact.creation", "contact.propertyChange"),
        ),
        factories.route(github, "repository", kind="repository.event", flow="http_forward", connection="ci"),
        factories.route(generic, "order", kind="order.changed", mode="projection", flow="http_forward", settle=2.0),
    )


def show_case() -> World:
    activation.activate("script")
    activation.forget()
    hour = Hour()
    _flow(hour)
    dead = _trouble(hour)
    _life(hour, "contact:60117")
    waiting = _waiting(hour)
    record = _record(hour)
    unverified = models.UnverifiedDelivery.objects.create(
        endpoint_id=models.Endpoint.objects.get(slug="org").id,
        body=b'{"action":"opened","number":17}',
        body_sha256="a3" * 32,
        headers=json.dumps({"content-type": "application/json", "x-github-event": "pull_request"}),
        url="https://hooks.example.com/ingress/default/org",
        reason="x-hub-signature-256 does not match: none of the 1 valid secrets of this endpoint signed this body",
        received_at=hour.at(12),
    )
    models.Connection.objects.create(
        namespace="default",
        name="ci",
        url="https://ci.example.com/hooks",
        secrets=secrets.encrypt([{"secret": "one", "expires_at": None}]),
        created_at=hour.at(900),
    )
    for kind, host in (("router", "app-1"), ("worker", "app-1"), ("worker", "app-2")):
        console_world.worker(kind, host=host, seen_ago=timedelta(minutes=-5))  # taking pictures takes a while
    Worker.objects.update(started_at=hour.at(900))
    entries = [
        models.AuditEntry.objects.create(
            at=hour.at(ago), actor=actor, action=action, target=target, reason=reason, detail=json.dumps(detail)
        )
        for actor, action, target, reason, ago, detail in (
            ("cli:deploy", "config.apply", "default", "release 41", 55, {"routes": ["contact v3"], "removed": []}),
            ("ada", "lane.hold", "contact:60441", "duplicate account under review", 9, {"until": hour.at(-120).isoformat()}),
            ("ada", "work.replay", dead.work_id, "billing accepts EUR again", 3, {"retarget": False}),
        )
    ]
    event = Event.objects.get(id=dead.event_id)
    job, preview = showcase_jobs.show_jobs(hour)
    return World(
        receipt=event.receipt_id,
        unverified=unverified.id,
        event=event.id,
        work=waiting.work_id,
        dead=dead.work_id,
        lane=str(waiting.lane_key),
        record=record.id,
        route=hour.contacts.id,
        source="60117",
        job=job,
        preview=preview,
        endpoint=_rotated(hour).id,
        entry=entries[1].id,
    )


def _rotated(hour: Hour) -> models.Endpoint:
    """The endpoint of the contacts, in the overlap of a rotation, with limits."""
    live = [{"secret": "new", "expires_at": None}, {"secret": "old", "expires_at": (hour.now + timedelta(hours=23)).isoformat()}]
    row = hour.endpoint
    row.secrets, row.rotated_at, row.limits = (
        secrets.encrypt(live),
        hour.at(57),
        json.dumps({"limit": [200, 1.0], "concurrency": 20}),
    )
    row.save()
    hour.event(hour.contacts, "contact:60117", 0.03)
    return row


def _flow(hour: Hour) -> None:
    for minute in range(59, 0, -1):
        busy = 2 + hour.random.randrange(4) + (5 if 24 < minute < 31 else 0)
        for _ in range(busy):
            source = f"contact:{hour.random.randrange(60_400, 60_900)}"
            hour.done(
                hour.contacts,
                source,
                minute,
                State.SKIPPED if hour.random.random() < 0.05 else State.PROCESSED,
                inputs=hour.random.choice([1, 1, 2, 4]),
            )
        if minute % 3 == 0:
            hour.done(hour.repositories, f"repository:{hour.random.randrange(500, 520)}", minute)


def _trouble(hour: Hour) -> WorkItem:
    item: WorkItem | None = None
    for error, times in ERRORS:
        for place in range(times):
            facts = hour.orders if "billing" in error else hour.contacts
            source = f"{'order' if facts is hour.orders else 'contact'}:{hour.random.randrange(61_000, 62_000)}"
            item = hour.dead(facts, source, 14 + place * 2.3, error)
    assert item is not None
    for state, ago in (("quarantined", 20), ("rejected", 31), ("conflict", 44)):
        hour.receipt('{"not": "what it should be"', ago, state, last_error="not JSON: expected ',' or '}' at character 27")
    return item


def _life(hour: Hour, source: str) -> None:
    """What happened to one record before: bursts, and a death that a replay healed."""
    for ago, inputs in ((56, 4), (52, 1), (49.5, 6), (31, 2)):
        hour.done(hour.contacts, source, ago, inputs=inputs)
    died = hour.dead(hour.contacts, source, 24, ERRORS[2][0])
    again = rows.replay_row(died, State.PROCESSED, created_date=hour.at(21), claimed_at=hour.at(20.9), terminal_at=hour.at(20.6))
    WorkItem.objects.filter(id=again.id).update(first_claimed_at=hour.at(20.9), run_after=hour.at(21))
    Event.objects.filter(id=again.event_id).update(created_date=hour.at(21))
    hour.done(hour.contacts, source, 15, inputs=3)


def _waiting(hour: Hour) -> WorkItem:
    """A lane that waits to retry with work queued behind, running and settling ones, and a held lane."""
    error = "ConnectTimeout: crm.internal did not answer within 10 s"
    source = "contact:60117"
    for ago in (9.4, 8.8, 7.1, 6.9, 6.2, 4.0):
        hour.event(hour.contacts, source, ago)
    item = rows.work_row(
        hour.event(hour.contacts, source, 3.5),
        State.RETRY,
        attempts=3,
        last_error=error,
        created_date=hour.at(9.4),
        claimed_at=hour.at(2),
    )
    WorkItem.objects.filter(id=item.id).update(run_after=hour.now + timedelta(seconds=45))
    for attempt in (1, 2, 3):
        hour.failure(item, error, attempt, "retry", 4 - attempt)
    rows.work_row(hour.event(hour.contacts, source, 1.2), State.BLOCKED)
    for number in range(7):
        note = hour.event(hour.repositories, source, 1.1 - number / 10, provider_kind="contact.note")
        rows.work_row(note, State.BLOCKED, created_date=note.created_date)
    for number in range(4):
        rows.work_row(hour.event(hour.contacts, f"contact:{60_200 + number}", 0.05), State.PROCESSING, created_date=hour.at(0.05))
    for number in range(9):
        due = hour.now + timedelta(seconds=4)
        rows.work_row(hour.event(hour.contacts, f"contact:{60_300 + number}", 0.02), run_after=due, created_date=hour.at(0.02))
    held = rows.work_row(hour.event(hour.contacts, "contact:60441", 8), created_date=hour.at(8))
    LaneHold.objects.create(
        namespace="default",
        lane_key=held.lane_key,
        lane="contact:60441",
        reason="duplicate account under review",
        held_by="ada",
        held_at=hour.at(9),
    )
    for _ in range(3):
        hour.receipt("[]", 0.01, "pending")
    return item


def _record(hour: Hour) -> models.Record:
    made = []
    for number, name in enumerate(NAMES):
        source = str(60_117 + number)
        first, _, last = name.partition(" ")
        properties = {
            "firstname": {"value": first, "ordinal": 11 + number},
            "lastname": {"value": last, "ordinal": 12 + number},
            "lifecyclestage": {"value": "customer", "ordinal": 391},
            "phone": {"value": "+44 20 7946 0018", "ordinal": 402},
            "annualrevenue": {"value": 1250000, "ordinal": 377},
            "hs_object_id": {"value": 9007199254740993, "ordinal": 11},
        }
        made.append(
            models.Record.objects.create(
                record_key=identity.digest("record", source),
                namespace="default",
                pack_name="hubspot",
                event_kind="contact.changed",
                source_type="contact",
                source_id=source,
                properties=json.dumps(properties),
                deleted=number == 5,
                event_count=7 + number,
                last_ordinal=402,
                created_at=hour.at(900),
                updated_at=hour.at(4 + number),
            )
        )
    return made[0]
