"""What the lists export whose rows are no `ConsoleTable`. Never a secret: only how many are live, as on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

from connectors.operations.trace import Trace
from ops_ui.console.jobs import reads as job_reads
from ops_ui.console.lanes import reads as lane_reads
from ops_ui.console.lists.exports import Columns, Rows
from ops_ui.console.lists.keyset import Cursor, Page
from projection.bulk.job_rows import ItemState
from projection.states import State


def lanes(rows: Sequence[Any]) -> Rows:
    """Of `lane_reads.Lane`."""
    return Columns(
        rows,
        {
            "lane": lambda lane: lane.name,
            "lane_key": lambda lane: lane.key,
            "state": lambda lane: lane.head and lane.head.state,
            "work_id": lambda lane: lane.head and lane.head.work_id,
            "attempts": lambda lane: lane.head and lane.head.attempts,
            "max_attempts": lambda lane: lane.head and lane.head.max_attempts,
            "live_items": lambda lane: lane.depth,
            "run_after": lambda lane: lane.head and lane.head.run_after,
            "waiting_since": lambda lane: lane.head and lane.head.created_date,
            "held_by": lambda lane: lane.hold and lane.hold.held_by,
            "held_at": lambda lane: lane.hold and lane.hold.held_at,
            "hold_reason": lambda lane: lane.hold and lane.hold.reason,
        },
    )


def lane_pages(chosen: str) -> Callable[[Cursor | None, int], Page]:
    """The reader of the lanes whose head is in a state, of the held ones (`held`), or of all."""
    if chosen == "held":
        return lane_reads.held
    states = (State(chosen),) if chosen else lane_reads.FRONT_STATES

    def read(cursor: Cursor | None, size: int) -> Page:
        found = lane_reads.heads(states, cursor, size)
        return Page(lane_reads.lanes(found.rows), found.previous, found.next)

    return read


def jobs(rows: Sequence[Any]) -> Rows:
    """Of `Job`."""
    names = ("id", "kind", "state", "actor", "reason", "filter", "rate", "total", "done", "refused", "deferred", "skipped")
    times = ("created_date", "fixed_at", "finished_at")
    return Columns(rows, {name: _member(name) for name in (*names, *times)})


def results(rows: Sequence[Any]) -> Rows:
    """Of `job_reads.Result`."""
    return Columns(
        rows,
        {
            "work_id": lambda one: one.item.work_id,
            "source_lane": lambda one: one.dead and one.dead.source_lane,
            "outcome": lambda one: one.item.state,
            "code": lambda one: one.item.code,
            "reason": lambda one: one.item.reason,
            "replay_work_id": lambda one: one.item.replay_work_id,
            "replay_state": lambda one: one.replay and one.replay.state,
        },
    )


def result_pages(job_id: int, state: ItemState | None) -> Callable[[Cursor | None, int], Page]:
    """The reader of a job's items, which go by their place in lane order."""
    place = job_reads.START

    def read(_cursor: Cursor | None, size: int) -> Page:
        nonlocal place
        found = job_reads.results(job_id, state, place, size)
        place = job_reads.parse(found.next or "")
        return Page(found.results, next=Cursor("after", place[1]) if found.next else None)

    return read


def workers(rows: Sequence[Any]) -> Rows:
    """Of `Worker`."""
    names = ("kind", "host", "pid", "code_version", "flows_hash", "started_at", "seen_at")
    return Columns(rows, {name: _member(name) for name in names})


def destinations(rows: Sequence[Any]) -> Rows:
    """Of the lines of the page: `row` is a `Destination`."""
    names = ("name", "state", "failures", "openings", "parked_at", "parked_until", "last_error")
    return Columns(rows, {name: _member_of("row", name) for name in names})


def limits(rows: Sequence[Any]) -> Rows:
    """Of the limits of the page of destinations: `row` is a `RateBucket`."""
    names = ("namespace", "name", "rate", "per_microseconds", "concurrency", "next_slot_at")
    return Columns(rows, {name: _member_of("row", name) for name in names})


def pauses(rows: Sequence[Any]) -> Rows:
    """Of what is paused."""
    return Columns(rows, {name: _member(name) for name in ("kind", "namespace", "name", "since", "by", "reason", "until")})


def endpoints(rows: Sequence[Any]) -> Rows:
    """Of (`endpoint_reads.EndpointRow`, `Pack` or None)."""
    return Columns(
        rows,
        {
            "namespace": lambda pair: pair[0].endpoint.namespace,
            "slug": lambda pair: pair[0].endpoint.slug,
            "pack": lambda pair: pair[1] and pair[1].name,
            "state": lambda pair: pair[0].endpoint.state,
            "url": lambda pair: pair[0].url,
            "secrets": lambda pair: pair[0].secrets,
            "keeps_unverified": lambda pair: pair[0].keeps_unverified,
            "created_at": lambda pair: pair[0].endpoint.created_at,
            "rotated_at": lambda pair: pair[0].endpoint.rotated_at,
        },
    )


def packs(rows: Sequence[Any]) -> Rows:
    """Of `PackRow`."""
    own = ("namespace", "name", "version", "incarnation", "state", "installed_at", "paused_at")
    fields = {name: _member_of("pack", name) for name in own}
    return Columns(
        rows,
        fields
        | {
            "endpoints": lambda row: ", ".join(end.endpoint.slug for end in row.endpoints),
            "routes": lambda row: ", ".join(key for _, key in row.routes),
        },
    )


def connections(rows: Sequence[Any]) -> Rows:
    """Of `ConnectionRow`."""
    return Columns(
        rows,
        {
            "namespace": lambda row: row.connection.namespace,
            "name": lambda row: row.connection.name,
            "url": lambda row: row.connection.url,
            "secrets": lambda row: row.secrets,
            "routes": lambda row: ", ".join(key for _, key in row.routes),
            "created_at": lambda row: row.connection.created_at,
        },
    )


def traced(found: Trace) -> list[dict[str, Any]]:
    """The rows of a trace, receipts first: each with its kind and the fields that it has."""
    parts = (("receipt", found.receipts), ("event", found.events), ("work_item", found.work_items), ("failure", found.failures))
    return [{"row": kind} | {name: getattr(row, name, None) for name in TRACED} for kind, rows in parts for row in rows]


TRACED: Final = (
    *("id", "namespace", "state", "outcome", "delivery_id", "receipt_id", "event_id", "ordinal", "kind", "provider_kind"),
    *("source_type", "source_id", "lane", "route", "route_version", "flow", "work_id", "replay_of_work_id", "attempt", "attempts"),
    *("max_attempts", "received_at", "routed_at", "created", "claimed_at", "terminal_at", "at", "worker", "last_error", "error"),
)
"""Fields of the rows of a trace that are exported; no row has all of them."""


def trace(rows: Sequence[Any]) -> Rows:
    """Of `traced`."""
    return Columns(rows, {name: itemgetter(name) for name in ("row", *TRACED)})


def _member(name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(row, name)


def _member_of(part: str, name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(getattr(row, part), name)
