"""Erase: a person's data goes, what is left is a tombstone with ids, order and hashes (docs/protocol.md#erasure).

By source: its events' payloads, readable names and errors, the bodies of the receipts that they came in, bodies that brought them again,
held deliveries, and its live records. By receipt: that body and the events that came of it. Small transactions under the namespace
lock, each of which checks again that nothing still needs what it erases; a run that ends early is simply started again. The audit
entry is written first, so that every tombstone names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final

from connectors import audit_log
from connectors.models import Receipt
from connectors.operations import verbs
from connectors.retention import erased_sources
from connectors.retention.erased_bodies import Source, holding, repeats, sql, unverified
from connectors.retention.erased_sources import ERASE_ACTION, EVENTS_A_UNIT, live_events, tombstones, with_siblings
from connectors.routing.erased_receipts import erase_receipts
from projection.database.catalogue import chunks
from projection.database.transactions import run_unit
from projection.logs import log_event
from projection.models import Event, WorkItem
from projection.refusals import Refused
from projection.replay.discard import Discarded
from projection.retention import erasure
from projection.retention.cut_offs import IdSet
from projection.states import ReceiptState

MOST_WAITING: Final = 1000
"""Receipts not routed yet that are looked through before; where more wait, they are routed first."""
LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased (or would be).

    `lost_items`: items of the erased bodies that had been rejected, so that no event keeps them. `shared_events`: events of other
    sources that were read from the same items and keep their text, at most some; erase those sources too where it is the person's.
    """

    events: int = 0
    work_items: int = 0
    receipts: int = 0
    records: int = 0
    unverified: int = 0
    lost_items: int = 0
    shared_events: tuple[int, ...] = ()
    refused: tuple[Refused, ...] = ()

    def counts(self) -> dict[str, int]:
        """The numbers by name."""
        return {name: value for name, value in asdict(self).items() if isinstance(value, int)}

    @property
    def total(self) -> int:
        return self.events + self.receipts + self.records + self.unverified


@dataclass(slots=True)
class _Run:
    """One erasure under way."""

    namespace: str
    erasure_id: int
    done: Erased = field(default_factory=Erased)

    def add(self, **more: int) -> None:
        self.done = replace(self.done, **{name: getattr(self.done, name) + count for name, count in more.items()})


def examine(source: Source) -> Erased:
    """What `erase_source` would do, and what stands in its way. Reads only; bodies that brought something again are the run's to find."""
    receipts, events, shared = IdSet(), IdSet(), IdSet()
    refused = _waiting(source)
    for page in live_events(source):
        ids, others = with_siblings(source, page)
        for kept, found in ((events, ids), (shared, others), (receipts, _receipts_of(ids))):
            for one in found:
                kept.add(one)
        refused += [one for one in erasure.work_in_the_way(ids) if one not in refused]
    return Erased(
        events=len(events),
        receipts=len(receipts),
        records=len(erased_sources.records(source)),
        unverified=len(unverified(source)),
        shared_events=tuple(one for one, _ in zip(shared, range(LISTED), strict=False)),
        refused=tuple(refused[:LISTED]),
    )


def _receipts_of(event_ids: Sequence[int]) -> list[int]:
    """Receipts that the events came in and that are kept with their bodies."""
    ids = Event.objects.filter(id__in=event_ids).values_list("receipt_id", flat=True)
    return list(Receipt.objects.filter(id__in=set(ids), erasure_id=None).values_list("id", flat=True))


def _waiting(source: Source) -> list[Refused]:
    """Receipts that are not routed yet and hold items of the source: what they bring is not known to anyone so far."""
    rows = sql.fetch("read_waiting_receipts", namespace=source.namespace, limit=MOST_WAITING + 1)
    if len(rows) > MOST_WAITING:
        reason = f"more than {MOST_WAITING} receipts of {source.namespace} wait to be routed; try again after they are routed"
        return [Refused(source.namespace, "backlog", reason)]
    states = dict(rows)
    return [_not_routed(receipt, states[receipt]) for receipt in holding(source, list(states))]


def _not_routed(receipt_id: int, state: str) -> Refused:
    if state == ReceiptState.QUARANTINED:
        reason = f"receipt {receipt_id} is quarantined; route it again, or erase it with --receipt {receipt_id}"
        return Refused(str(receipt_id), "quarantined_receipt", reason)
    return Refused(str(receipt_id), "pending_receipt", f"receipt {receipt_id} is not routed yet; erase it after it is routed")


def erase_source(source: Source, *, actor: str, reason: str, discard: bool = False) -> Erased:
    """Erase a source. Refused, and then nothing (more) is done: `nonterminal`, `dead`, `missing_task`, `pending_receipt`,
    `quarantined_receipt`, `backlog`; each names what stands in the way. `discard`: dead letters are discarded first.
    """
    plan = examine(source)
    while discard and (dead := [one.id for one in plan.refused if one.code == "dead"]):
        if not all(isinstance(verbs.discard(one, actor=actor, reason=reason), Discarded) for one in dead):
            break
        plan = examine(source)
    if plan.refused:
        return Erased(refused=plan.refused)
    erasure_id = next((page[-1][2] for page in tombstones(source)), None)
    if plan.total or erasure_id is None:
        erasure_id = _begin(
            ERASE_ACTION,
            erasure.tombstone_id(source.account, source.type, source.ids[0]),
            plan,
            actor,
            reason,
            account=source.account,
        )
    run = _Run(source.namespace, erasure_id)
    refused = _erase_events(run, (with_siblings(source, page)[0] for page in live_events(source)))
    if not refused:
        _erase_what_came_again(run, source)
        run.add(unverified=_delete("delete_unverified", unverified(source)))
        run.add(records=_delete("delete_records", erased_sources.records(source)))
    return _end(run, actor, refused, plan.shared_events)


def erase_receipt(receipt_id: int, *, actor: str, reason: str, dry_run: bool = False) -> Erased:
    """Erase the body of a receipt and the events that came of it; live records stay. A quarantined one is rejected with it.

    Refused: `not_found`, `pending_receipt`, and as `erase_source`.
    """
    receipt = Receipt.objects.defer("body").filter(id=receipt_id).first()
    if receipt is None:
        return Erased(refused=(Refused(str(receipt_id), "not_found", f"there is no receipt {receipt_id}"),))
    refused = [_not_routed(receipt_id, receipt.state)] if receipt.state == ReceiptState.PENDING else []
    ids = list(Event.objects.filter(receipt_id=receipt_id, erasure_id=None).order_by("id").values_list("id", flat=True))
    refused += [one for some in chunks(ids, EVENTS_A_UNIT) for one in erasure.work_in_the_way(some)]
    plan = Erased(events=len(ids), receipts=int(receipt.erasure_id is None), refused=tuple(refused[:LISTED]))
    if dry_run or refused or not plan.total:
        return plan if dry_run else Erased(refused=plan.refused)
    run = _Run(receipt.namespace, _begin("receipt.erase", f"receipt {receipt_id}", plan, actor, reason))
    stopped = _erase_events(run, chunks(ids, EVENTS_A_UNIT))
    if not stopped:
        if receipt.state == ReceiptState.QUARANTINED:
            run_unit("erase", lambda: sql.execute("reject_quarantined", id=receipt_id))
        _erase_bodies(run, [receipt_id])
        _erase_conflicts(run, [receipt_id])
    return _end(run, actor, stopped, ())


def _begin(action: str, target: str, plan: Erased, actor: str, reason: str, **detail: str) -> int:
    """The audit entry that the tombstones name: what is to be erased."""
    return int(audit_log.record(actor, action, target, reason, plan.total, {**plan.counts(), **detail}).id)


def _end(run: _Run, actor: str, refused: Sequence[Refused], shared: tuple[int, ...]) -> Erased:
    log_event("erase", namespace=run.namespace, actor=actor, erasure_id=run.erasure_id, counts=run.done.counts())
    return replace(run.done, refused=tuple(refused), shared_events=shared)


def _erase_events(run: _Run, pages: Iterable[Sequence[int]]) -> Sequence[Refused]:
    """Tombstones, page by page; ends at the first page that something still needs."""
    for ids in pages:
        part = run_unit("erase", partial(_unit, run.namespace, run.erasure_id, ids))
        if part.refused:
            return part.refused
        run.add(**part.counts())
    return ()


def _unit(namespace: str, erasure_id: int, event_ids: Sequence[int]) -> Erased:
    """Under the namespace lock: what still needs the events, else they and the bodies that they came in become tombstones."""
    WorkItem.objects.lock_namespace(namespace)
    refused = erasure.work_in_the_way(event_ids)
    if refused:
        return Erased(refused=tuple(refused))
    receipts, lost = erase_receipts(_receipts_of(event_ids), erasure_id)
    facts = erasure.erase_facts(event_ids, erasure_id)
    return Erased(events=facts.events, work_items=facts.work_items, receipts=receipts, lost_items=lost)


def _erase_what_came_again(run: _Run, source: Source) -> None:
    """Other bodies under the same delivery ids, and receipts that brought the same items again."""
    earliest: datetime | None = None
    for page in tombstones(source):
        receipts = sorted({receipt for _, receipt, _ in page})
        _erase_conflicts(run, receipts)
        first = sql.fetch("read_earliest_receipt", ids=tuple(receipts))[0][0]
        earliest = min((one for one in (earliest, first) if one is not None), default=None)
    for receipts in repeats(source, earliest):
        _erase_bodies(run, receipts)


def _erase_conflicts(run: _Run, receipt_ids: Sequence[int]) -> None:
    """A transaction of its own, after the one that erased the first: `receive` sees that, or is waited for here."""

    def unit() -> tuple[int, int]:
        return erase_receipts([row[0] for row in sql.fetch("lock_conflicts_of", ids=tuple(receipt_ids))], run.erasure_id)

    receipts, lost = run_unit("erase", unit)
    run.add(receipts=receipts, lost_items=lost)


def _erase_bodies(run: _Run, receipt_ids: Sequence[int]) -> None:
    for some in chunks(receipt_ids, EVENTS_A_UNIT):
        receipts, lost = run_unit("erase", partial(erase_receipts, some, run.erasure_id))
        run.add(receipts=receipts, lost_items=lost)


def _delete(name: str, ids: Sequence[int]) -> int:
    return run_unit("erase", lambda: sql.execute(name, ids=tuple(ids))) if ids else 0
