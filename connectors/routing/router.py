"""Route: pending receipts become admitted events, a batch of one namespace in one admitted transaction (docs/protocol.md#admit).

The batch commits whole or not at all. When it keeps failing its receipts are admitted one by one, so that the one at fault is found:
it waits with back-off while later ones pass, then it is quarantined. Nothing is acknowledged that was not admitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from connectors.registry import installed_packs
from connectors.routing import route_table
from connectors.routing.erased_receipts import erase_receipts
from connectors.routing.reading import ItemVerdict, Reading, read_receipt, receipt_of, verdicts_text
from connectors.routing.route_table import RouteBook
from projection import exact_json
from projection.admission.admit import Admitted, StaleIncarnation, admit
from projection.admission.coverage import Known
from projection.database.catalogue import Sender, by_id
from projection.database.outages import is_database_away, is_outage
from projection.database.transactions import is_conflict, run_unit
from projection.logs import log_event
from projection.models import Event
from projection.safe_text import error_text
from projection.states import ReceiptState

sql: Final = Sender(Path(__file__).parent)

BATCH_BYTES: Final = 32 * 1024 * 1024
"""Bodies read at once: bounds memory and the transaction, far under TiDB's 100 MiB."""
BATCH_EVENTS: Final = 20_000
"""Events read for one transaction, which holds its namespace: the receipts behind the one that exceeds it wait for the next."""
QUARANTINE_AFTER: Final = 5
"""Failed admissions of one receipt on its own; with the back-off below about five minutes of trying."""
BACKOFF_SECONDS: Final = (5, 15, 60, 240)
FENCE_ROUNDS: Final = 5
"""A pack upgraded between reading the routes and the lock is rare; five upgrades in a row are an operator's mistake."""


@dataclass(frozen=True, slots=True)
class RouteReport:
    """What routing did, in numbers."""

    seen: int = 0
    """Receipts that were due when the batch was read; more than `receipts` when another router was faster."""
    receipts: int = 0
    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    rejected_receipts: int = 0
    rejected_items: int = 0
    repaired: int = 0
    deferred: int = 0
    quarantined: int = 0
    stages: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: RouteReport) -> RouteReport:
        names = [name for name in self.__dataclass_fields__ if name != "stages"]
        stages = {key: self.stages.get(key, 0.0) + other.stages.get(key, 0.0) for key in {**self.stages, **other.stages}}
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names}, stages=stages)


def namespaces_with_pending() -> list[str]:
    """Namespaces with a receipt that waits. One query."""
    return sorted(row[0] for row in sql.fetch("read_namespaces_with_pending"))


def drain_receipts(namespace: str | None = None, batch: int | None = None) -> RouteReport:
    """Route everything that is due now, of one namespace or of all."""
    report = RouteReport()
    for name in [namespace] if namespace else namespaces_with_pending():
        while (step := route_batch(name, batch)).seen:
            report += step
    return report


def route_batch(namespace: str, batch: int | None = None) -> RouteReport:
    """Route the oldest pending receipts of a namespace, at most `batch` (default HEADRACE_ROUTER_BATCH) and 32 MiB of bodies.

    A report of 0 seen: nothing is due. Raises the database's error when it is away or its conflicts do not end; nothing is lost.
    """
    ids = _next_ids(namespace, batch or settings.HEADRACE_ROUTER_BATCH)
    if not ids:
        return RouteReport()
    seen = RouteReport(seen=len(ids))
    try:
        return seen + _admit_receipts(namespace, ids)
    except Exception as error:
        if _is_of_no_receipt(error):
            raise
        log_event(
            "route",
            level="warning",
            namespace=namespace,
            count=len(ids),
            error=error_text(error),
            reason="the batch failed; its receipts are admitted one by one",
        )
    return seen + _admit_one_by_one(namespace, ids)


def _is_of_no_receipt(error: Exception) -> bool:
    """Whether the database is away or busy, so that no receipt is at fault.

    A server also drops the connection over a statement that it does not take: when it answers a fresh one, it is not away.
    """
    return is_database_away(error) if is_outage(error) else is_conflict(error)


def _next_ids(namespace: str, limit: int) -> list[int]:
    """Ids of the batch: the oldest receipts whose bodies together fit in memory, at least one."""
    ids: list[int] = []
    room = BATCH_BYTES
    read_before = False
    for receipt_id, length, again in sql.fetch("read_pending_receipts", namespace=namespace, limit=limit):
        room -= length
        if ids and room < 0:
            break
        ids.append(receipt_id)
        read_before = read_before or bool(again)
    if read_before:  # somebody has just changed the settings, and wants those
        installed_packs.of.forget()
    return ids


def _admit_one_by_one(namespace: str, ids: Sequence[int]) -> RouteReport:
    report = RouteReport()
    for receipt_id in ids:
        try:
            report += _admit_alone(namespace, receipt_id)
        except Exception as error:
            if _is_of_no_receipt(error):
                raise
            report += _defer(receipt_id, error)
    return report


def _admit_alone(namespace: str, receipt_id: int) -> RouteReport:
    """Once more at once after a lost connection: to be put off would let later receipts pass, and it may not be at fault."""
    try:
        return _admit_receipts(namespace, [receipt_id])
    except (DatabaseError, InterfaceError) as error:
        if not is_outage(error) or is_database_away(error):
            raise
    return _admit_receipts(namespace, [receipt_id])


def _defer(receipt_id: int, error: Exception) -> RouteReport:
    """Keep a receipt that cannot be admitted: later, or in quarantine when it failed too often."""
    attempts = sql.fetch("read_attempts", id=receipt_id)[0][0]
    quarantined = attempts + 1 >= QUARANTINE_AFTER
    state = ReceiptState.QUARANTINED if quarantined else ReceiptState.PENDING
    delay = BACKOFF_SECONDS[min(attempts, len(BACKOFF_SECONDS) - 1)]
    text = error_text(error)
    run_unit("defer", lambda: sql.execute("defer_receipt", id=receipt_id, error=text, state=state.value, delay=delay))
    log_event("route", level="error", receipt_id=receipt_id, state=state.value, attempt=attempts + 1, error=text)
    return RouteReport(deferred=int(not quarantined), quarantined=int(quarantined))


def _admit_receipts(namespace: str, ids: Sequence[int]) -> RouteReport:
    """Read the receipts, then admit them in one unit; start over when a pack was upgraded in between."""
    for _ in range(FENCE_ROUNDS):
        book = route_table.load(namespace)
        readings = _readings(ids, book)
        try:
            report = run_unit("admit", partial(_admit, book, readings))
        except StaleIncarnation:
            continue
        _log_admitted(namespace, report)
        return report
    raise StaleIncarnation(f"the packs of namespace {namespace!r} were upgraded {FENCE_ROUNDS} times while one batch was read")


def _readings(ids: Sequence[int], book: RouteBook) -> list[Reading]:
    """What the receipts say, in the order of `ids`: all of them, or the first ones that make a full batch of events."""
    rows = {row[0]: row for row in sql.fetch("read_receipt_bodies", ids=tuple(ids))}
    readings: list[Reading] = []
    room = BATCH_EVENTS
    for row in (rows[receipt_id] for receipt_id in ids if receipt_id in rows):
        readings.append(read_receipt(receipt_of(row), book))
        room -= len(readings[-1].events)
        if room <= 0:
            break
    return readings


def _admit(book: RouteBook, readings: Sequence[Reading]) -> RouteReport:
    """The admitted transaction: lock namespace, packs and receipts, admit, mark. Raises StaleIncarnation behind the fence."""
    lock = route_table.lock(book)
    rows = sql.fetch("lock_receipts", ids=tuple(reading.receipt_id for reading in readings))
    before = {receipt_id: events for receipt_id, state, events in rows if state == ReceiptState.PENDING}
    ours = _without_known_items([one for one in readings if one.receipt_id in before], before)
    admitted = admit(lock, [event for reading in ours for event in reading.events])
    conflicts = _real_conflicts(admitted.conflicts, book)
    _mark(ours, admitted, conflicts, before)
    for receipt_id, erasure_id in admitted.erased.items():
        erase_receipts([receipt_id], erasure_id)
    return RouteReport(
        receipts=len(ours),
        events=sum(admitted.events.values()),
        duplicates=sum(admitted.duplicates.values()),
        conflicts=len(conflicts),
        rejected_receipts=sum(reading.error is not None for reading in ours),
        rejected_items=sum(len(reading.rejected) for reading in ours),
        repaired=admitted.repaired,
        stages=admitted.stages,
    )


def _without_known_items(readings: list[Reading], before: Mapping[int, int | None]) -> list[Reading]:
    """Of receipts that are read again: without the items that became events before, whatever they are called by now."""
    again = tuple(receipt_id for receipt_id, events in before.items() if events)
    if not again:
        return readings
    known = set(sql.fetch("read_items_of_receipts", ids=again))
    return [
        replace(one, events=[event for event in one.events if (event.receipt_id, event.payload_sha256) not in known])
        for one in readings
    ]


def _real_conflicts(found: Sequence[Known], book: RouteBook) -> list[Known]:
    """Those of the differing duplicates that their pack does not call the same fact. One read; none when nothing differs.

    Some are none: a provider may count its own retries in the body.
    """
    stored = [known.event.id for known in found if known.event is not None]
    texts = {row.id: row.payload for row in Event.objects.read_events(stored)} if stored else {}
    return [known for known in found if not _is_same(known, texts, book)]


def _is_same(known: Known, texts: dict[int, str], book: RouteBook) -> bool:
    first = known.first.payload if known.first is not None else texts.get(known.event.id if known.event else 0)
    if first is None:
        return False
    pack = book.pack_object(known.inbound.pack_id)
    try:
        return pack.is_same_fact(exact_json.parse(first), exact_json.parse(known.inbound.payload))
    except exact_json.NotJson:
        return False


def _log_admitted(namespace: str, report: RouteReport) -> None:
    """Once it is committed."""
    log_event(
        "admit",
        namespace=namespace,
        count=report.events,
        receipts=report.receipts,
        duplicates=report.duplicates,
        conflicts=report.conflicts,
        rejected=report.rejected_items + report.rejected_receipts,
        stages={stage: round(seconds, 6) for stage, seconds in report.stages.items()},
    )


def _mark(readings: Sequence[Reading], admitted: Admitted, found: Sequence[Known], before: Mapping[int, int | None]) -> None:
    """Acknowledge the locked receipts: routed with counts and verdicts, or rejected with the reason. `before`: their events so far."""
    verdicts: dict[int, list[ItemVerdict]] = {reading.receipt_id: list(reading.rejected) for reading in readings}
    conflicts = dict.fromkeys(verdicts, 0)
    for known in found:
        conflicts[known.inbound.receipt_id] += 1
        reason = f"delivery {known.inbound.delivery_id} was already received with a different payload; the first one is kept"
        verdicts[known.inbound.receipt_id].append(ItemVerdict(known.inbound.item, "conflict", reason))
    rows = [_row(one, before[one.receipt_id] or 0, admitted, conflicts[one.receipt_id]) for one in readings if one.error is None]
    if rows:
        columns = ("State", "ItemCount", "EventCount", "DuplicateCount", "ConflictCount", "RejectedCount", "ReadingKey")
        parts, values = by_id(columns, rows)
        sql.execute("mark_receipts", [*values, tuple(row[0] for row in rows)], **parts)
    noted = [(receipt, verdicts_text(several)) for receipt, several in verdicts.items() if several]
    if noted:
        parts, values = by_id(("Verdicts",), noted)
        sql.execute("note_verdicts", [*values, tuple(row[0] for row in noted)], **parts)
    unreadable = [(reading.receipt_id, reading.error, reading.key) for reading in readings if reading.error is not None]
    if unreadable:
        parts, values = by_id(("LastError", "ReadingKey"), unreadable)
        sql.execute("reject_receipts", [*values, tuple(row[0] for row in unreadable)], **parts)


def _row(reading: Reading, before: int, admitted: Admitted, conflicts: int) -> tuple[object, ...]:
    """(id, state, counts, reading key) of a receipt that was read; `before`: events that it brought when it was read before."""
    events, rejected = before + admitted.events.get(reading.receipt_id, 0), len(reading.rejected)
    duplicates = admitted.duplicates.get(reading.receipt_id, 0)
    state = outcome(events=events, duplicates=duplicates, conflicts=conflicts, rejected=rejected)
    return (reading.receipt_id, state.value, reading.items, events, duplicates, conflicts, rejected, reading.key)


def outcome(*, events: int, duplicates: int, conflicts: int, rejected: int) -> ReceiptState:
    """How a receipt that could be read ends: `rejected` when none of its items was taken."""
    if not rejected and not conflicts:
        return ReceiptState.ROUTED
    return ReceiptState.PARTIAL if events or duplicates or conflicts else ReceiptState.REJECTED
