"""What must be in the database after the soak, held against what the senders know. Nothing here asks the code under test."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.acceptance.service import Service
from tests.soak.deliveries import AT_LEAST_ONCE, EXACTLY_ONCE, HUBSPOT_ROUTES, POISON, ROUTES
from tests.soak.ledger import Ledger

SHOWN: Final = 5
POISON_ATTEMPTS: Final = 3
NUMBER_IN_HUBSPOT_IDS: Final = 4
"""Place of the eventId in the delivery ids of the pack."""


def findings(site: Service, ledger: Ledger) -> list[str]:
    """Every sentence is a fault; none: nothing is lost, and nothing doubled."""
    return [*_receipts(site, ledger), *_events(site, ledger), *_work(site), *_executions(site, ledger), *_records(site, ledger)]


def _receipts(site: Service, ledger: Ledger) -> Iterator[str]:
    rows = site.fetch(
        "SELECT e.Slug, r.BodySha256, r.State, COUNT(*) FROM `_System_ConnectorReceipt` r "
        "JOIN `_System_ConnectorEndpoint` e ON e.Id = r.EndpointId GROUP BY e.Slug, r.BodySha256, r.State"
    )
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for slug, sha256, state, count in rows:
        found[slug][sha256] += count
        if state != "routed":
            yield f"{count} receipts of {slug} are {state}"
    for slug, bodies in ledger.receipts.items():
        yield from _differ(f"{slug}: accepted bodies without a receipt", bodies - found[slug].keys())
        if slug != "crm":  # HubSpot's deliveries have no id: a copy is a receipt of its own, and its events are known
            yield from _differ(f"{slug}: bodies with several receipts", [body for body, count in found[slug].items() if count > 1])
            yield from _differ(f"{slug}: receipts that nobody sent", found[slug].keys() - bodies)


def _events(site: Service, ledger: Ledger) -> Iterator[str]:
    rows = site.fetch(
        "SELECT r.RouteKey, e.DeliveryId FROM `_System_ConnectorEvent` e LEFT JOIN `_System_ConnectorRoute` r ON r.Id = e.RouteId"
    )
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for route, delivery_id in rows:
        found[route][_number(route, delivery_id)] += 1
    for route in ROUTES:
        yield from _once(f"{route}: events", ledger.facts[route], found.pop(route, Counter()))
    if found:
        yield f"events of no route that the soak has: {dict(found)}"


def _number(route: str, delivery_id: str) -> int:
    if route in HUBSPOT_ROUTES:
        return int(delivery_id.split(":")[NUMBER_IN_HUBSPOT_IDS])
    return int(delivery_id.replace("_", "-").rpartition("-")[2])


def _work(site: Service) -> Iterator[str]:
    rows = site.fetch(
        "SELECT w.State, r.RouteKey, w.Attempts, w.LastError, COUNT(*) FROM `_System_ConnectorWorkItem` w "
        "JOIN `_System_ConnectorRoute` r ON r.Id = w.RouteId GROUP BY w.State, r.RouteKey, w.Attempts, w.LastError "
        "HAVING w.State <> 'processed' OR r.RouteKey = %s",
        POISON,
    )
    for state, route, attempts, error, count in rows:
        if route != POISON:
            yield f"{count} work items of {route} are {state}: {error}"
        elif (state, attempts, "worker lost" in str(error)) != ("dead", POISON_ATTEMPTS, True):
            yield f"{count} items that kill their process are {state} after {attempts} attempts: {error}"


def _executions(site: Service, ledger: Ledger) -> Iterator[str]:
    """By the account that the flows kept in their own table."""
    found: dict[str, Counter[int]] = defaultdict(Counter)
    last: dict[tuple[str, str], int] = {}
    for route, source, fact, ordinal in site.fetch("SELECT route, source, fact, ordinal FROM soak_applied ORDER BY id"):
        found[route][int(fact)] += 1
        if route in EXACTLY_ONCE:
            if ordinal <= last.get((route, source), 0):
                yield f"{route} {source}: ordinal {ordinal} came after {last[route, source]}"
            last[route, source] = ordinal
    for route in EXACTLY_ONCE:
        yield from _once(f"{route}: executed inputs", ledger.facts[route], found[route])
    for route in AT_LEAST_ONCE:
        facts = ledger.facts[route]
        yield from _differ(f"{route}: inputs that were not executed", facts.keys() - found[route].keys())
        yield from _differ(f"{route}: executed inputs that nobody sent", found[route].keys() - facts.keys())
    # An attempt is given back where the database went away under it (it may have kept the row and lost the answer), and where its
    # worker was lost while others ran beside it.
    more = site.fetch(
        "SELECT a.work_id FROM (SELECT work_id, COUNT(*) AS runs FROM soak_applied WHERE route IN %s GROUP BY work_id) a "
        "JOIN `_System_ConnectorWorkItem` w ON w.WorkId = a.work_id WHERE a.runs > w.Attempts + "
        "(SELECT COALESCE(SUM(f.Times), 0) FROM `_System_ConnectorWorkFailure` f "
        "WHERE f.WorkId = a.work_id AND f.Outcome IN ('deferred', 'rescued'))",
        AT_LEAST_ONCE,
    )
    yield from _differ("work items that ran more often than they were claimed", [row[0] for row in more])


def _records(site: Service, ledger: Ledger) -> Iterator[str]:
    """`record_table` counts each event of a record once."""
    expected = Counter(ledger.facts["record"].values())
    found = dict(site.fetch("SELECT SourceId, EventCount FROM `_System_ConnectorRecord`"))
    wrong = [f"{source}: {found.get(source)} of {count}" for source, count in expected.items() if found.get(source) != count]
    yield from _differ("records that do not hold each of their events once", wrong)


def _once(what: str, expected: Mapping[int, str], found: Mapping[int, int]) -> Iterator[str]:
    yield from _differ(f"{what} that are missing", expected.keys() - found.keys())
    yield from _differ(f"{what} that nobody sent", found.keys() - expected.keys())
    yield from _differ(f"{what} that are there several times", [number for number, count in found.items() if count > 1])


def _differ(what: str, which: Any) -> Iterator[str]:
    if which:
        yield f"{what}: {len(which)}, such as {sorted(which)[:SHOWN]}"
