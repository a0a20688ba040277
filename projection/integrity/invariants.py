"""The audit: proves the protocol's invariants on live data (docs/protocol.md#invariants).

Large tables are walked by primary key, a page at a time; each invariant is one set-based read of a page, so memory is bounded by
what is reported. Nothing is locked: every read is one snapshot, in which a committed transaction is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import DatabaseError, connection

from projection.database.catalogue import statement
from projection.database.damage import Damage, damage, damaged_tables

PAGE_ROWS: Final = 50_000
"""Rows of one page: about a second of a scan, so that a snapshot is never kept open for long."""
LISTED: Final = 100
"""Violations listed for each invariant; one more row then tells how many there are."""

READABLE: Final = "tables_readable"
"""No invariant of the protocol: without it the others cannot be checked."""
EVENTS: Final = "`_System_ConnectorEvent`"
WORK_ITEMS: Final = "`_System_ConnectorWorkItem`"


@dataclass(frozen=True, slots=True)
class Invariant:
    """One thing that always holds. `sql` finds the rows of a page of `table` that break it: (found in all, id, what …).

    `sentence` says what is wrong with a row, `{0}` being the first `what`. `table` None: `sql` reads everything at once.
    """

    name: str
    sql: str
    sentence: str
    table: str | None


@dataclass(frozen=True, slots=True)
class Violation:
    """A row that breaks an invariant. `id` is a WorkId, or the number of an event or receipt; empty on the row that counts the rest."""

    invariant: str
    id: str
    detail: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What was checked (rows read for each invariant) and what broke."""

    checked: dict[str, int]
    violations: list[Violation]

    @property
    def ok(self) -> bool:
        return not self.violations


def _of_events(name: str, sentence: str) -> Invariant:
    return Invariant(name, statement(f"audit_{name}"), sentence, EVENTS)


def _of_work_items(name: str, sentence: str) -> Invariant:
    return Invariant(name, statement(f"audit_{name}"), sentence, WORK_ITEMS)


INVARIANTS: Final = (
    _of_events("payload_hash", "its payload was changed after admission: it no longer has the hash {0}"),
    _of_events("tombstone", "erasure {0} did not remove its payload or its readable names"),
    _of_events("route_snapshot", "{0}"),
    _of_events("delivery_key", "another event has the same delivery key {0}"),
    _of_events("ordinal_unique", "another event has the same sequence number {0} in namespace {1}"),
    _of_events("projection_covered", "no generation of projection {1} covers its sequence number {0}: its work is missing"),
    _of_events("legacy_covered", "no generation of projection {1} covers it (no sequence number): its work is missing"),
    _of_events("per_event_work", "it has {0} work items instead of one (replays not counted)"),
    _of_events("replay_event", "{0}"),
    _of_work_items("active_key", "it is active for projection {0}, but belongs to projection {1}"),
    _of_work_items("one_active", "projection {0} has another active generation"),
    _of_work_items("one_successor", "projection {0} has another queued successor"),
    _of_work_items("successor_alone", "a successor of {0} is queued, but no generation is active"),
    _of_work_items("successor_inactive", "it is a queued successor, but {0}"),
    _of_work_items("replay_lineage", "{0}"),
    _of_work_items("execution_class", "its execution class {0} does not fit its projection {1}"),
    _of_work_items("selected_event", "{0}"),
    _of_work_items("terminal_state", "{0}"),
    _of_work_items("lease", "{0}"),
    _of_work_items("ranges_distinct", "another generation of projection {1} selects sequence number {0} too: their events overlap"),
    _of_work_items("lane_holder", "it is {0}; its lane is {1}, but the lane that it holds is {2}"),
    _of_work_items("one_holder", "another item holds lane {0} too"),
    _of_work_items("lane_stranded", "it is blocked, but nothing in lane {0} is ahead of it: it waits for nothing"),
    _of_work_items("lane_first_due", "it is the first due item of lane {0}, but blocked behind items that are still settling"),
)
"""What holds in the projection's tables. The ingress adds its own (`connectors.operations.ingress_audit`)."""


@dataclass(slots=True)
class _Findings:
    """What one invariant has found so far; keeps no more rows than are listed."""

    found: int = 0
    listed: list[Violation] = field(default_factory=list)

    def add(self, invariant: Invariant, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        self.found += int(rows[0][0])
        for _, id, *what in rows[: LISTED - len(self.listed)]:
            self.listed.append(Violation(invariant.name, str(id), invariant.sentence.format(*what)))

    def violations(self, invariant: Invariant) -> list[Violation]:
        if self.found <= len(self.listed):
            return self.listed
        rest = Violation(invariant.name, "", f"{self.found} violations in total; the first {len(self.listed)} are listed")
        return [*self.listed, rest]


def audit(invariants: Iterable[Invariant] = INVARIANTS, *, page_rows: int = PAGE_ROWS) -> AuditReport:
    """Check every invariant on every retained row that was there at the start.

    At most LISTED violations are listed for each; one more, with an empty id, then says how many there are. Cost: one query for each
    invariant and page, and one for each page. What cannot be read because a table is damaged is one violation of `tables_readable`.
    """
    chosen = list(invariants)
    checked = {invariant.name: 0 for invariant in chosen}
    damaged = {found.table: found for found in damaged_tables()}
    findings = {invariant.name: _Findings() for invariant in chosen}
    for table in dict.fromkeys(invariant.table for invariant in chosen):
        remaining = [invariant for invariant in chosen if invariant.table == table]
        for found in _walk(table, remaining, page_rows, checked, findings):
            damaged.setdefault(found.table, found)
    if any(damaged):
        damaged.pop("", None)  # the server named no table: it is one of these
    violations = [Violation(READABLE, found.table, found.sentence) for found in damaged.values()]
    violations += [violation for invariant in chosen for violation in findings[invariant.name].violations(invariant)]
    return AuditReport(checked, violations)


def _walk(
    table: str | None, invariants: Sequence[Invariant], page_rows: int, checked: dict[str, int], findings: dict[str, _Findings]
) -> Iterator[Damage]:
    """Check a table's invariants a page at a time; yields the damage for which one of them, or the table, could not be read on."""
    if table is None:
        for invariant in invariants:
            checked[invariant.name] = 1
            yield from _check(invariant, {"limit": LISTED}, findings)
        return
    readable = list(invariants)
    after = 0
    try:
        ((end,),) = _query(statement("audit_end").format(table=table), {})
        while True:
            bounds = {"after": after, "end": end, "page_rows": page_rows}
            ((rows, last),) = _query(statement("audit_page").format(table=table), bounds)
            if not rows:
                return
            for invariant in list(readable):
                checked[invariant.name] += rows
                for found in _check(invariant, {"after": after, "last": last, "limit": LISTED}, findings):
                    readable.remove(invariant)
                    yield found
            after = last
    except DatabaseError as error:
        if (met := damage(error)) is None:
            raise
        yield met


def _check(invariant: Invariant, bounds: dict[str, int], findings: dict[str, _Findings]) -> list[Damage]:
    try:
        findings[invariant.name].add(invariant, _query(invariant.sql, bounds))
    except DatabaseError as error:
        if (met := damage(error)) is None:
            raise
        return [met]
    return []


def _query(sql: str, parameters: dict[str, int]) -> Sequence[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
