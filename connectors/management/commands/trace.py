"""`trace ID`: where is my webhook? Exit code 1 when nothing has the id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from connectors.management.operations_command import first_line
from connectors.operations import work_ids
from connectors.operations.trace import WAYS, Trace, trace
from connectors.operations.traced import TracedEvent, TracedFailure, TracedItem, TracedReceipt
from projection.cli import DONE, FINDINGS, HeadraceCommand, iso, table


class Command(HeadraceCommand):
    help = "Shows what happened to a delivery: receipts, events, work items, failures."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "text",
            metavar="DELIVERY_ID",
            help="a delivery id, source id, type:id, lane, WorkId, or the number of a receipt or event",
        )

    def perform(self, **options: Any) -> int:
        text: str = options["text"]
        found = trace(text)
        if not found.found:
            try:
                found = trace(work_ids.full(text))
            except work_ids.Ambiguous as several:
                raise CommandError(f"{several}.") from None
        self.emit(asdict(found), _lines(found) if found.found else _nothing(text))
        return DONE if found.found else FINDINGS


def _nothing(text: str) -> list[str]:
    return [f"Nothing found for {text}.", f"Searched as: {', '.join(WAYS.values())}."]


def _lines(found: Trace) -> Iterator[str]:
    for match in found.matches:
        yield f"{match.rows}{'+' if match.more else ''} found by {match.title}"
    for title, lines in (
        ("receipts", [*_receipts(found.receipts), *_verdicts(found.receipts)]),
        ("events", _events(found.events)),
        ("work items", _work_items(found.work_items)),
        ("failures", _failures(found.failures)),
    ):
        yield title
        yield from lines
    if found.truncated:
        yield "Only the newest of each kind are shown; there are more."


def _receipts(rows: Sequence[TracedReceipt]) -> list[str]:
    return table(
        ["id", "state", "received", "routed", "items", "events", "duplicates", "conflicts", "rejected", "error"],
        [
            (
                r.id,
                r.state,
                iso(r.received_at),
                iso(r.routed_at),
                r.items,
                r.events,
                r.duplicates,
                r.conflicts,
                r.rejected,
                r.last_error,
            )
            for r in rows
        ],
    )


def _verdicts(rows: Sequence[TracedReceipt]) -> list[str]:
    """Why items of a receipt became no event: those that were rejected or are in conflict, never duplicates."""
    return [
        f"receipt {row.id}, item {one['item']}: {one['code']}: {first_line(one['reason'])}" for row in rows for one in row.verdicts
    ]


def _events(rows: Sequence[TracedEvent]) -> list[str]:
    return table(
        ["id", "receipt", "sequence", "kind", "account", "source", "delivery", "route", "created"],
        [
            (
                e.id,
                e.receipt_id,
                e.ordinal,
                e.kind,
                e.account,
                f"{e.source_type}:{e.source_id}",
                e.delivery_id,
                e.route or "-",
                iso(e.created),
            )
            for e in rows
        ],
    )


def _work_items(rows: Sequence[TracedItem]) -> list[str]:
    return table(
        ["work id", "state", "flow", "account", "lane", "attempts", "scheduled for", "ended", "error"],
        [
            (
                w.work_id,
                w.state,
                w.flow,
                w.account,
                w.lane,
                f"{w.attempts}/{w.max_attempts}",
                iso(w.run_after),
                iso(w.terminal_at),
                w.last_error,
            )
            for w in rows
        ],
    )


def _failures(rows: Sequence[TracedFailure]) -> list[str]:
    return table(
        ["work id", "attempt", "outcome", "at", "error"],
        [
            (f.work_id, f.attempt, f.outcome if f.times == 1 else f"{f.outcome} ×{f.times}", iso(f.at), first_line(f.error))
            for f in rows
        ],
    )
