"""SC400: 400 sources × 10 events and 400 interactive actions, from stored receipts to processed work."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, sleep
from typing import Any, Final

from django.db.models import Max

from connectors import models
from connectors.bench.workbench import BenchFailed, empty, floor_seconds, own_database, run_worker, server, texts_sent
from connectors.configuration.packs import install
from connectors.configuration.routes import RouteDraft, publish
from connectors.delivery import Headers, IngressRequest
from connectors.ingress import endpoint_facts
from connectors.ingress.store import store_within
from connectors.routing.router import RouteReport, namespaces_with_pending, route_batch
from projection.database import clock
from projection.facts import PER_EVENT, PROJECTION
from projection.flows import Generation
from projection.models import Event, WorkItem

NAMESPACE: Final = "bench"
EVENTS_A_RECEIPT: Final = 100
"""HubSpot's largest array."""
BASE: Final = {
    "portalId": 62515,
    "appId": 54321,
    "changeSource": "CRM",
    "attemptNumber": 0,
    "occurredAt": 1_782_371_969_536,
}


@dataclass
class _Seen:
    """What the no-op flow was given."""

    inputs: list[int] = field(default_factory=list)
    items: int = 0

    def __call__(self, generation: Generation) -> None:
        self.items += 1
        self.inputs += [one.event_id for one in generation.inputs]


@dataclass(frozen=True, slots=True)
class Workload:
    """Its size: `sources` × `events` projection events and `actions` per-event ones."""

    sources: int = 400
    events: int = 10
    actions: int = 400

    @property
    def all_events(self) -> int:
        return self.sources * self.events + self.actions

    @property
    def work_items(self) -> int:
        return self.sources + self.actions

    @property
    def receipts(self) -> int:
        return -(-self.all_events // EVENTS_A_RECEIPT)


def run(workload: Workload, repeat: int, *, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Run the workload `repeat` times and report medians (seconds), with each repetition under `runs`. Raises BenchFailed."""
    with own_database():
        configure()
        runs = []
        for number in range(repeat):
            runs.append(_repetition(workload))
            say(f"run {number + 1}: admission {runs[-1]['admission_s']:.3f} s, floor {runs[-1]['raw_insert_s']:.3f} s")
        database = server()
    medians: dict[str, Any] = {name: median(run[name] for run in runs) for name in runs[0] if name != "stages"}
    medians["stages"] = {stage: median(run["stages"][stage] for run in runs) for stage in runs[0]["stages"]}
    return {"database": database, **medians, "runs": runs}


def configure() -> None:
    """Install the pack, an endpoint and the two routes of the workloads."""
    install(NAMESPACE, "hubspot", actor="bench")
    pack = models.Pack.objects.get(namespace=NAMESPACE, name="hubspot")
    models.Endpoint.objects.create(pack_id=pack.id, namespace=NAMESPACE, slug="bench", created_at=clock.now())
    projection: Any = {"mode": PROJECTION, "settle_seconds": 0.05}
    per_event: Any = {"mode": PER_EVENT, "queue_class": "interactive"}
    for draft in (
        RouteDraft("contact", "hubspot", ("contact.*",), "contact.changed", flow="bench.noop", **projection),
        RouteDraft("action", "hubspot", ("deal.*",), "deal.action", flow="bench.noop", **per_event),
    ):
        publish(NAMESPACE, draft, actor="bench", allow_missing_code=True)  # the flow is there while it is measured


def action(number: int) -> dict[str, Any]:
    """A HubSpot event that becomes one per-event item in a lane of its own."""
    return {
        **BASE,
        "eventId": 900_000_000 + number,
        "subscriptionId": 2,
        "subscriptionType": "deal.creation",
        "objectId": number + 1,
    }


def _events(workload: Workload) -> list[dict[str, Any]]:
    """HubSpot events, the sources' changes interleaved, the actions spread among them."""
    changes = [
        {**BASE, "eventId": turn * 1_000_000 + source, "subscriptionId": 1, "subscriptionType": "contact.propertyChange",
         "objectId": 508_369_000_000 + source, "propertyName": f"property_{turn}", "propertyValue": f"value {turn} of {source}"}
        for turn in range(workload.events) for source in range(workload.sources)
    ]  # fmt: skip
    actions = [action(number) for number in range(workload.actions)]
    step = max(1, len(changes) // max(1, len(actions)))
    for number, one in enumerate(actions):
        changes.insert(number * (step + 1), one)
    return changes


def store_events(events: Sequence[dict[str, Any]]) -> int:
    """Store events as HubSpot would send them, EVENTS_A_RECEIPT a delivery; number of deliveries. Raises BenchFailed."""
    facts = endpoint_facts.load((NAMESPACE, "bench"))
    if facts is None:
        raise BenchFailed("the endpoint of the workload is gone")
    bodies = [events[at : at + EVENTS_A_RECEIPT] for at in range(0, len(events), EVENTS_A_RECEIPT)]
    for body in bodies:
        store_within(facts, IngressRequest("POST", "", Headers({"content-type": "application/json"}), json.dumps(body).encode()))
    return len(bodies)


def _repetition(workload: Workload) -> dict[str, Any]:
    empty()
    receipts = store_events(_events(workload))
    with texts_sent() as texts:
        started = perf_counter()
        report = _admit(workload)
        admission = perf_counter() - started
    raw = floor_seconds(("_System_ConnectorEvent", "_System_ConnectorWorkItem"))
    _until_settled()
    seen, seconds, drain = _drain()
    _check(workload, report, seen)
    return {
        "events": report.events,
        "work_items": seen.items,
        "inputs": len(seen.inputs) - workload.actions,
        "receipts": receipts,
        "raw_insert_s": raw,
        "admission_s": admission,
        "stages": {stage: report.stages.get(stage, 0.0) for stage in ("prepare", "settle", "facts", "projections", "lanes")},
        "claim_s": seconds["claim"],
        "input_read_s": seconds["input_read"],
        "complete_s": seconds["complete"],
        "combined_s": admission + seconds["input_read"],
        "end_to_end_s": admission + drain,
        "statements": texts.count,
        "admission_over_raw": admission / raw,
        "end_to_end_over_raw": (admission + drain) / raw,
    }


def _admit(workload: Workload) -> RouteReport:
    """Everything in one admission, however many receipts: the figure is about the transaction, not about batches."""
    report = RouteReport()
    for name in namespaces_with_pending():
        report += route_batch(name, max(workload.receipts, 1))
    return report


def _until_settled() -> None:
    """Wait until everything is due: a small workload is admitted before its settling time is over. Part of no figure."""
    last = WorkItem.objects.aggregate(last=Max("run_after"))["last"]
    if last is not None:
        sleep(max(0.0, (last - clock.now()).total_seconds()))


def _drain() -> tuple[_Seen, dict[str, float], float]:
    """One worker runs everything: what it saw, seconds by stage, seconds in all."""
    seen = _Seen()

    def noop(generation: Generation) -> None:
        seen(generation)

    seconds, stages = run_worker(noop)
    return seen, stages, seconds


def _check(workload: Workload, report: RouteReport, seen: _Seen) -> None:
    """Every event, work item and input, exactly once. Raises BenchFailed."""
    stored = set(Event.objects.values_list("id", flat=True))
    figures = {
        "events admitted": (report.events, workload.all_events),
        "events stored": (len(stored), workload.all_events),
        "work items": (WorkItem.objects.count(), workload.work_items),
        "work items processed": (WorkItem.objects.filter(state="processed").count(), workload.work_items),
        "executions": (seen.items, workload.work_items),
        "inputs": (len(seen.inputs), workload.all_events),
        "distinct inputs": (len(set(seen.inputs) & stored), workload.all_events),
    }
    for what, (found, wanted) in figures.items():
        if found != wanted:
            raise BenchFailed(f"{what}: {found} instead of {wanted}")
