"""Managers of the projection tables: one method for a named statement, with the statement's name.

Here are the statements whose parameters or rows take a shape that a step should not have to know, or that several steps send; others
are sent by name from the one module that needs them (`database/catalogue.py`). What each changes, locks and means by 0 rows stands above
its text, in the folder of the step. Each method is one statement unless it says otherwise, and joins its caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import models

from projection.database import older_schema
from projection.database.catalogue import NO_ID, NO_NAME, by_id, execute, fetch, insert_rows
from projection.database.clock import from_db
from projection.order import Place
from projection.rows import EVENT_COLUMNS, FACT_COLUMNS, WORK_COLUMNS, EventRow, KnownEvent, LaneRow, WorkRow, prefixed
from projection.states import State

Table = TypeVar("Table", bound=models.Model)
"""The model that names the manager: `models.py` stands on this module, and not the other way round."""


class EventManager(models.Manager[Table]):
    """Statements about immutable facts."""

    def read_known_deliveries(self, keys: Sequence[str]) -> list[KnownEvent]:
        return [KnownEvent.of(row) for row in fetch("read_known_deliveries", keys=tuple(keys))]

    def read_known_events(self, ids: Sequence[int]) -> list[KnownEvent]:
        return [KnownEvent.of(row) for row in fetch("read_known_events", ids=tuple(ids))]

    def insert_events(self, rows: Sequence[tuple[Any, ...]]) -> int:
        """Several statements when the rows exceed a packet."""
        return insert_rows("insert_events", rows)

    def read_event_ids(self, namespace: str, first: int, last: int) -> dict[int, int]:
        """Ordinal → id."""
        return dict(fetch("read_event_ids", namespace=namespace, first=first, last=last))

    def read_stored_facts(self, ids: Sequence[int], *, payloads: bool) -> list[dict[str, Any]]:
        """Rows as column → value, times naive; without `payloads` that column is empty."""
        names = FACT_COLUMNS.split(", ")
        columns = ", ".join("''" if name == "Payload" and not payloads else name for name in names)
        rows = fetch("read_stored_facts", fact_columns=columns, ids=tuple(ids))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def read_settle_deadlines(self, keys: Sequence[str], now: datetime) -> dict[str, datetime]:
        """Projection keys, at most 256 → naive deadline of those with an open burst."""
        return dict(fetch("read_settle_deadlines", keys=tuple(keys), now=now))

    def read_inputs(self, ranges: Sequence[tuple[str, int, int]]) -> list[tuple[str, EventRow]]:
        """(projection key, after ordinal, through ordinal) → (projection key, event) in order."""
        condition = " OR ".join(["(ProjectionKey = %s AND EnqueueOrdinal > %s AND EnqueueOrdinal <= %s)"] * len(ranges))
        values = [value for one in ranges for value in one]
        rows = fetch("read_inputs", values, ranges=condition, event_columns=EVENT_COLUMNS)
        return [(row[0], EventRow.of(row[1:])) for row in rows]

    def read_mixed_keys(self, keys: Iterable[str]) -> set[str]:
        return {row[0] for row in fetch("read_mixed_keys", keys=tuple(keys))}

    def read_event_places(self, keys: Iterable[str]) -> list[tuple[str, Place]]:
        """(projection key, place)."""
        rows = fetch("read_event_places", keys=tuple(keys))
        return [(key, Place(event, ordinal, from_db(created), sequence)) for key, event, ordinal, created, sequence in rows]

    def read_events(self, ids: Iterable[int]) -> list[EventRow]:
        return [EventRow.of(row) for row in fetch("read_events", event_columns=EVENT_COLUMNS, ids=tuple(ids))]

    def fence_events(self, event_ids: Iterable[int]) -> int:
        return execute("fence_events", event_ids=tuple(event_ids))

    def read_event_owners(self, event_ids: Iterable[int]) -> dict[int, str]:
        return dict(fetch("read_event_owners", event_ids=tuple(event_ids)))

    def lock_legacy_results(self, event_ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """(id, status, last error)."""
        return fetch("lock_legacy_results", event_ids=tuple(event_ids))


class WorkItemManager(models.Manager[Table]):
    """Statements about executable work."""

    # admit

    def lock_namespace(self, namespace: str) -> int | None:
        """The next ordinal; None = no such namespace."""
        rows = fetch("lock_namespace", namespace=namespace)
        return rows[0][0] if rows else None

    def lock_packs(self, ids: Iterable[int]) -> list[tuple[int, str, str, datetime]]:
        """(id, incarnation, state, aware database time), by ascending id."""
        return [(row[0], row[1], row[2], from_db(row[3])) for row in fetch("lock_packs", ids=tuple(sorted(set(ids))))]

    def set_next_ordinal(self, namespace: str, following: int) -> int:
        return execute("set_next_ordinal", namespace=namespace, next=following)

    def read_current_generations(self, keys: Sequence[str]) -> list[int]:
        return [row[0] for row in fetch("read_current_generations", keys=tuple(keys), limit=len(keys) + 1)]

    def lock_work_items(self, ids: Iterable[int]) -> list[WorkRow]:
        wanted = tuple(sorted(set(ids)))
        rows = fetch("lock_work_items", work_columns=WORK_COLUMNS, ids=wanted) if wanted else []
        return [WorkRow.of(row) for row in rows]

    def read_newest_ordinary(self, event_ids: Sequence[int]) -> dict[int, int | None]:
        """Event id → LaneOrdinal of its projection's newest ordinary generation."""
        return dict(fetch("read_newest_ordinary", event_ids=tuple(event_ids)))

    def read_any_generation(self, event_ids: Sequence[int]) -> set[int]:
        return {row[0] for row in fetch("read_any_generation", event_ids=tuple(event_ids))}

    def read_per_event_work(self, work_ids: Sequence[str]) -> set[str]:
        return {row[0] for row in fetch("read_per_event_work", work_ids=tuple(work_ids))}

    def insert_work_items(self, rows: Sequence[tuple[Any, ...]]) -> int:
        """Several statements when the rows exceed a packet."""
        if older_schema.is_before_replays():
            return insert_rows("insert_work_items_before_replays", [(*row[:3], *row[4:]) for row in rows])
        return insert_rows("insert_work_items", rows)

    def advance_generations(self, selections: Sequence[tuple[int, int, int, datetime, int, datetime]]) -> int:
        columns = ("EventId", "LaneOrdinal", "EventCreatedDate", "DeliverySequence", "RunAfter")
        parts, values = by_id(columns, selections)
        return execute("advance_generations", [*values, tuple(row[0] for row in selections)], **parts)

    def activate_generations(self, ids: Sequence[int]) -> int:
        return execute("activate_generations", ids=tuple(ids))

    # lanes

    def read_unblocked_rows(self, lanes: Sequence[str]) -> list[LaneRow]:
        return [LaneRow.of(row) for row in fetch("read_unblocked_rows", lanes=tuple(lanes))]

    def read_next_blocked(self, ids: Sequence[int]) -> dict[int, int | None]:
        """Work item id → id of the first live blocked row of its lane."""
        return dict(fetch("read_next_blocked", ids=tuple(ids)))

    def unblock_work_items(self, ids: Sequence[int]) -> int:
        return execute("unblock_work_items", ids=tuple(ids))

    # claim

    def preselect_work_items(
        self,
        state: str,
        queue_class: str,
        flows: Sequence[tuple[str, str]],
        *,
        activated: bool,
        limit: int,
        namespaces: Collection[str] = (),
        packs: Collection[int] = (),
        routes: Collection[int] = (),
        lost_lanes: Collection[str] = (),
    ) -> list[tuple[int, int, str | None, str | None, int]]:
        """(id, event id, lane key, executor owner or None where the event is not retained, route id).

        Left out is what belongs to one of the `namespaces`, `packs`, `routes` or `lost_lanes`.
        """
        return fetch(
            "preselect_work_items",
            state=state,
            queue_class=queue_class,
            flows=tuple(flows),
            activated=int(activated),
            namespaces=tuple(namespaces) or NO_NAME,
            packs=tuple(packs) or NO_ID,
            routes=tuple(routes) or NO_ID,
            lost_lanes=tuple(lost_lanes) or NO_NAME,
            limit=limit,
        )

    def claim_work_items(
        self, seen: Sequence[tuple[int, int, str]], *, owner: str, token: str, lease_seconds: int, started: Collection[int] = ()
    ) -> int:
        """`seen`: (id, event id, state) as they were read. `started`: the routes whose items count as started."""
        rows = [(item, event, int(state == State.RETRY)) for item, event, state in seen]
        parts, values = by_id(("EventId", "Retrying"), rows)
        return execute(
            "claim_work_items",
            [owner, token, lease_seconds, tuple(started) or NO_ID, tuple(row[0] for row in rows), *values],
            **parts,
        )

    def read_still_waiting(self, ids: Sequence[int]) -> set[int]:
        return {row[0] for row in fetch("read_still_waiting", ids=tuple(ids))} if ids else set()

    def read_taken(self, ids: Sequence[int], token: str) -> list[int]:
        return [row[0] for row in fetch("read_taken", ids=tuple(ids), token=token)]

    def read_claimed(self, ids: Iterable[int], token: str) -> list[tuple[WorkRow, EventRow | None, str | None]]:
        """(item, selected event or None where it is not retained, route snapshot)."""
        rows = fetch(
            "read_claimed",
            w_columns=prefixed("w", WORK_COLUMNS),
            e_columns=prefixed("e", EVENT_COLUMNS),
            ids=tuple(ids),
            token=token,
        )
        split = len(WORK_COLUMNS.split(","))
        return [(WorkRow.of(row[:split]), EventRow.of(row[split:-1]) if row[split] else None, row[-1]) for row in rows]

    def extend_leases(self, ids: Iterable[int], token: str, lease_seconds: int) -> int:
        return execute("extend_leases", ids=tuple(ids), token=token, lease_seconds=lease_seconds)

    # ranges

    def read_lower_bounds(self, ids: Iterable[int]) -> list[tuple[int, str, int, int | None, int]]:
        """(id, projection key, own ordinal, lower bound, 1 when the projection has rows from before ordinals)."""
        return fetch("read_lower_bounds", ids=tuple(ids))

    def read_selections(self, keys: Iterable[str]) -> list[tuple[str, int, Place]]:
        """(projection key, work item id, selection) of ordinary generations."""
        rows = fetch("read_selections", keys=tuple(keys))
        return [
            (key, item, Place(event, ordinal, from_db(created), sequence)) for key, item, event, ordinal, created, sequence in rows
        ]

    def read_lineage(self, work_ids: Iterable[str]) -> list[tuple[str, int, str | None, str | None, int, int, datetime]]:
        """(WorkId, id, ReplayOfWorkId, projection key, event id, lane ordinal)."""
        return fetch("read_lineage", work_ids=tuple(work_ids))

    # complete

    def lock_leases(self, ids: Iterable[int], tokens: Iterable[str]) -> set[tuple[int, str]]:
        """(id, token) of the leases that still hold: an item may hold another one of the tokens than its caller believes."""
        rows = fetch("lock_leases", ids=tuple(sorted(ids)), tokens=tuple(tokens))
        return {(row[0], row[1]) for row in rows}

    def complete_claimed_work_items(self, ids: Sequence[int], tokens: Iterable[str], state: str) -> int:
        return execute("complete_claimed_work_items", ids=tuple(ids), tokens=tuple(tokens), state=state)

    def insert_failures(self, rows: Sequence[tuple[Any, ...]]) -> int:
        return insert_rows("insert_failures", rows)

    def retry_claimed_work_items(self, delays: Sequence[tuple[int, int, int]]) -> int:
        """`delays`: (id, delay in ms, attempts to give back)."""
        parts, values = by_id(("DelayMs", "CountBack"), delays)
        return execute("retry_claimed_work_items", [*values, tuple(row[0] for row in delays)], **parts)

    def note_errors(self, errors: Sequence[tuple[int, str, str]]) -> int:
        """`errors`: (id, error text, fingerprint)."""
        parts, values = by_id(("Error", "ErrorFingerprint"), errors)
        return execute("note_errors", [*values, tuple(row[0] for row in errors)], **parts)

    def read_successors(self, keys: Sequence[str]) -> list[int]:
        return [row[0] for row in fetch("read_successors", keys=tuple(keys), limit=len(keys) + 1)]

    def cancel_work_items(self, ids: Sequence[int]) -> int:
        return execute("cancel_work_items", ids=tuple(ids))

    def read_expired_leases(self) -> list[int]:
        return [row[0] for row in fetch("read_expired_leases")]

    # legacy

    def read_unclaimed_work_of(self, event_ids: Sequence[int]) -> list[int]:
        return [row[0] for row in fetch("read_unclaimed_work_of", event_ids=tuple(event_ids))] if event_ids else []

    def end_unclaimed_work_items(self, ids: Sequence[int], state: str) -> int:
        return execute("end_unclaimed_work_items", ids=tuple(ids), state=state)
