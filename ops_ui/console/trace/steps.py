"""The way of what a trace found, step by step: received → admitted → due → claimed → ended, and what the time between went into.

Pure functions of traced rows. Every time is of the database's clock. Of several claims only the first and the last are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from connectors.operations.trace import Trace
from connectors.operations.traced import TracedEvent, TracedFailure, TracedItem, TracedReceipt
from projection.states import TERMINAL, ReceiptState, State

WAYS_SHOWN: Final = 20
"""Newest ways that a page shows step by step; the tables below them have the others."""
_SPENT: Final = {
    ("received", "admitted"): "routing",
    ("admitted", "due"): "settling",
    ("joined", "due"): "settling",
    ("admitted", "joined"): "collecting",
    ("joined", "joined"): "collecting",
    ("due", "claimed"): "waiting",
    ("again", "claimed"): "waiting",
    ("claimed", "failed"): "running",
    ("claimed", "ended"): "running",
    ("claimed", "now"): "running",
    ("failed", "again"): "retrying",
    ("again", "failed"): "running",
}
"""What the time between two kinds of steps goes into; anything else is waiting."""


@dataclass(frozen=True, slots=True)
class Step:
    """One moment of a way. `wait` is the time since the step before, `spent` what it went into."""

    kind: str
    name: str
    at: datetime
    note: str = ""
    wait: timedelta | None = None
    spent: str = ""
    tone: str = ""
    """The state that it ended in, for its colour."""
    is_ahead: bool = False
    """It is yet to come."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a way spent on one thing, at percentages of its whole length."""

    spent: str
    length: timedelta
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Way:
    """A work item with the events that led to it; or an event, or a receipt, that led to no work (`item` None)."""

    item: TracedItem | None
    event: TracedEvent | None
    receipt: TracedReceipt | None
    events: int
    """How many of the found events it took."""
    steps: tuple[Step, ...]

    @property
    def length(self) -> timedelta:
        past = [step.at for step in self.steps if not step.is_ahead]
        return past[-1] - past[0] if past else timedelta()

    @property
    def totals(self) -> list[tuple[str, timedelta]]:
        """What the time went into, largest first."""
        sums: dict[str, timedelta] = {}
        for step in self.steps:
            if step.wait and not step.is_ahead:
                sums[step.spent] = sums.get(step.spent, timedelta()) + step.wait
        return sorted(sums.items(), key=lambda pair: -pair[1])

    @property
    def shares(self) -> list[Share]:
        """The same in the order in which it passed, for a bar."""
        whole = self.length.total_seconds()
        found: list[Share] = []
        x = 0.0
        for step in self.steps if whole else ():
            if step.wait and not step.is_ahead:
                width = 100 * step.wait.total_seconds() / whole
                found.append(Share(step.spent, step.wait, round(x, 3), round(width, 3)))
                x += width
        return found


def ways(found: Trace, now: datetime) -> list[Way]:
    """The newest ways of a trace, newest first, at most WAYS_SHOWN."""
    receipts = {receipt.id: receipt for receipt in found.receipts}
    taken = _by_work_id(found.events)
    failures = _by_work_id(found.failures)
    made = [_of_item(item, taken.get(item.work_id, []), receipts, failures.get(item.work_id, []), now) for item in found.work_items]
    # Where rows are left out, an event without its work says nothing about it.
    alone = [event for event in found.events if event.work_id is None and not (event.route and found.truncated)]
    made += [_of_event(event, receipts.get(event.receipt_id), now) for event in alone]
    routed = {event.receipt_id for event in found.events}
    made += [_of_receipt(receipt, now) for receipt in found.receipts if receipt.id not in routed]
    return sorted(made, key=lambda way: way.steps[0].at, reverse=True)[:WAYS_SHOWN]


T = TypeVar("T", TracedEvent, TracedFailure)


def _by_work_id(rows: Iterable[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for row in rows:
        if row.work_id is not None:
            found.setdefault(row.work_id, []).append(row)
    return found


def _of_item(
    item: TracedItem,
    events: Sequence[TracedEvent],
    receipts: Mapping[int, TracedReceipt],
    failures: Sequence[TracedFailure],
    now: datetime,
) -> Way:
    first = events[0] if events else None
    receipt = receipts.get(first.receipt_id) if first else None
    steps = _beginning(item, events, receipt) + _attempts(item, failures) + _end(item, now)
    return Way(item, first, receipt, len(events), _with_waits(steps, now))


def _beginning(item: TracedItem, events: Sequence[TracedEvent], receipt: TracedReceipt | None) -> list[Step]:
    steps: list[Step] = []
    if item.replay_of_work_id:
        steps.append(Step("replayed", "Replayed", item.created))
    elif events:
        if receipt:
            steps.append(Step("received", "Received", receipt.received_at, f"receipt {receipt.id}"))
        steps.append(Step("admitted", "Admitted", events[0].created, f"event {events[0].id}"))
        if len(events) > 1:
            last = events[-1]
            steps.append(Step("joined", "Last event admitted", last.created, f"event {last.id}, {len(events)} in all"))
    else:
        steps.append(Step("admitted", "Admitted", item.created, "events not shown"))
    due = item.run_after if item.attempts <= 1 and item.state != State.RETRY else events[0].due if events else None
    return [*steps, Step("due", "Due", due)] if due else steps


def _attempts(item: TracedItem, failures: Sequence[TracedFailure]) -> list[Step]:
    steps = [Step("claimed", "Started", item.first_claimed_at)] if item.first_claimed_at else []
    if item.claimed_at and item.claimed_at != item.first_claimed_at:
        steps.append(Step("claimed", "Last attempt started" if steps else "Started", item.claimed_at))
    followers = [*failures[1:], None] if failures else []
    for failure, follower in zip(failures, followers, strict=True):
        error = failure.error.strip().partition("\n")[0]
        steps.append(Step("failed", f"Attempt {failure.attempt} failed", failure.at, f"{failure.outcome}: {error}"))
        ends = [at for at in (follower and follower.at, item.claimed_at, item.terminal_at) if at and at > failure.at]
        again = failure.at + timedelta(milliseconds=failure.delay_ms) if failure.delay_ms is not None else None
        if item.state == State.RETRY and follower is None:
            again = item.run_after
        if again and (not ends or again <= min(ends)):
            steps.append(Step("again", "Retry due", again))
    return steps


def _end(item: TracedItem, now: datetime) -> list[Step]:
    steps = []
    if item.terminal_at:
        steps.append(Step("ended", str(item.state).capitalize(), item.terminal_at, tone=item.state))
    elif item.state not in TERMINAL:
        steps.append(Step("now", "Now", now, item.state))
    if item.discarded_at:
        steps.append(Step("discarded", "Discarded", item.discarded_at, f"by {item.discarded_by}: {item.discard_reason or ''}"))
    return steps


def _of_event(event: TracedEvent, receipt: TracedReceipt | None, now: datetime) -> Way:
    note = (
        "its work is no longer retained"
        if event.route
        else "unrouted: no route matched; publish one, then run script/manage repair"
    )
    steps = [Step("received", "Received", receipt.received_at, f"receipt {receipt.id}")] if receipt else []
    return Way(None, event, receipt, 1, _with_waits([*steps, Step("admitted", "Admitted", event.created, note)], now))


def _of_receipt(receipt: TracedReceipt, now: datetime) -> Way:
    """A receipt of which no event is there: it waits, brought nothing new, or could not be taken."""
    error = (receipt.last_error or "").strip().partition("\n")[0]
    steps = [Step("received", "Received", receipt.received_at, f"receipt {receipt.id}")]
    if receipt.state == ReceiptState.CONFLICT:
        steps.append(
            Step(
                "ended",
                "Conflict: not processed",
                receipt.received_at,
                "an earlier delivery has the same id and a different body",
                tone=receipt.state,
            )
        )
    elif receipt.state in (ReceiptState.ROUTED, ReceiptState.PARTIAL):
        brought = f"duplicates {receipt.duplicates or 0}, conflicts {receipt.conflicts or 0}, rejected {receipt.rejected or 0}"
        steps.append(Step("ended", "Routed, no new events", receipt.routed_at or receipt.received_at, brought, tone=receipt.state))
    elif receipt.state == ReceiptState.REJECTED:
        steps.append(Step("ended", "Rejected", receipt.routed_at or receipt.received_at, error, tone=receipt.state))
    else:
        waits = f"{receipt.state}: {error}" if error else receipt.state
        steps.append(Step("now", "Now", now, waits))
        if receipt.next_attempt_at and receipt.next_attempt_at > now:
            steps.append(Step("again", "Next attempt", receipt.next_attempt_at))
    return Way(None, None, receipt, 0, _with_waits(steps, now))


def _with_waits(steps: Iterable[Step], now: datetime) -> tuple[Step, ...]:
    """The steps in order of time (those of one moment as they were given), each with its time since the one before."""
    ordered = sorted(steps, key=lambda step: step.at)
    made: list[Step] = []
    for before, step in zip([None, *ordered], ordered, strict=False):
        is_ahead = step.at > now
        if before is None:
            made.append(replace(step, is_ahead=is_ahead))
            continue
        spent = _SPENT.get((before.kind, step.kind), "waiting")
        made.append(replace(step, wait=step.at - before.at, spent=spent, is_ahead=is_ahead))
    return tuple(made)
