"""Materialize: bring work items in step with facts, set-based (docs/protocol.md#admitted-transaction).

Joins its caller's transaction, which holds the namespace lock. Reads ids without locks, locks work items once by ascending primary
key (current generations together with the lanes' live rows that will block), decides on the locked values, then writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from typing import Any, Final

from projection.admission.generations import Advance, decide
from projection.admission.input_loss import is_proven, refuse_losses
from projection.admission.rows import Fact, per_event_id, positions, work_row
from projection.completion import lanes
from projection.database.catalogue import chunks
from projection.database.clock import to_db
from projection.logs import log_event
from projection.models import WorkItem
from projection.order import Place, latest
from projection.refusals import Ambiguous
from projection.rows import WorkRow
from projection.states import State

KEYS_A_STATEMENT: Final = 128
LOCKS_A_STATEMENT: Final = 1000


class Stages:
    """Stop watch of one admission: seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = perf_counter()

    def end(self, stage: str) -> None:
        """Count the time since the last call towards `stage`."""
        now = perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._since
        self._since = now


def materialize(now: datetime, facts: Sequence[Fact], stages: Stages, *, dry_run: bool = False) -> None:
    """Create or advance the work of `facts`, and set the readiness of what is new; in a dry run only decide.

    Raises Ambiguous when the generations of a key break the protocol, UnsafeReplacement when an input would be lost, or the database's
    error: the caller rolls back. Statements grow with chunks of 128 projections and 256 lanes.
    """
    groups = _by_projection(facts)
    current_ids = [item for chunk in chunks(groups, KEYS_A_STATEMENT) for item in WorkItem.objects.read_current_generations(chunk)]
    stages.end("projections")
    blockers = lanes.read_blockers((fact.lane for fact in facts if fact.lane and fact.run_after <= now), now)
    stages.end("lanes")
    locked = lock_ascending([*current_ids, *(row.id for row in blockers.values())])
    current = _by_key(groups, (locked[item] for item in current_ids if item in locked))
    newcomers = {key: groups[key][0] for key, rows in current.items() if not rows}
    plan = Plan(now, lanes.still_blocking(blockers.values(), locked, now))
    plan.decide_all(facts, groups, current, first_ever=newcomers.keys() - _keys_with_history(newcomers))
    refuse_losses(plan.unproven)
    if not dry_run:
        plan.write()
    stages.end("projections")


def _by_projection(facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.projection_key:
            groups.setdefault(fact.projection_key, []).append(fact)
    return groups


def lock_ascending(ids: Sequence[int]) -> dict[int, WorkRow]:
    """Lock work items by ascending primary key, whatever their number."""
    return {row.id: row for chunk in chunks(sorted(set(ids)), LOCKS_A_STATEMENT) for row in WorkItem.objects.lock_work_items(chunk)}


def _by_key(keys: Iterable[str], rows: Iterable[WorkRow]) -> dict[str, list[WorkRow]]:
    """The nonterminal rows of each key. Raises Ambiguous for a row whose key only looks equal to a requested one."""
    current: dict[str, list[WorkRow]] = {key: [] for key in keys}
    for row in rows:
        if row.is_nonterminal:
            if row.projection_key not in current:
                raise Ambiguous(f"work item {row.work_id} has a key that the database treats as equal to another one")
            current[row.projection_key].append(row)
    return current


@dataclass(slots=True)
class Plan:
    """The changes of one admission to work items, decided on locked rows before anything is written."""

    now: datetime
    blocking: dict[str, tuple[int, int]]
    """(LanePosition, Id) of the row that blocks each lane: locked, or our own."""
    inserts: list[tuple[Any, ...]] = field(default_factory=list)
    advances: list[tuple[int, int, int, datetime, int, datetime]] = field(default_factory=list)
    activations: list[WorkRow] = field(default_factory=list)
    unproven: list[tuple[WorkRow, Place]] = field(default_factory=list)
    """Replacements whose union of inputs ordinals and times do not prove (docs/protocol.md#input-loss)."""

    def decide_all(
        self,
        facts: Sequence[Fact],
        groups: Mapping[str, list[Fact]],
        current: Mapping[str, list[WorkRow]],
        *,
        first_ever: Set[str],
    ) -> None:
        """One decision per projection, one item per per-event fact, in admission order."""
        decided: set[str] = set()
        for fact in positions(facts):
            key = fact.projection_key
            if key is None:
                self.add_item(fact, work_id=per_event_id(fact), active_key=None, position=fact.place.ordinal)
            elif key not in decided:
                decided.add(key)
                self.add_generation(key, groups[key], current[key], is_first=key in first_ever)

    def add_generation(self, key: str, group: Sequence[Fact], rows: Sequence[WorkRow], *, is_first: bool) -> None:
        """What the projection's facts of this admission, reduced to their newest, do to its generations."""
        place = latest(fact.place for fact in group)
        head = next(fact for fact in group if fact.place == place)
        fact = Fact(head.inbound, head.route, place, key, min(fact.run_after for fact in group))
        position = min(fact.place.ordinal for fact in group)
        decision = decide(key, place, rows, is_first=is_first)
        if isinstance(decision, Advance):
            self.advance(decision, place, fact.run_after)
        elif decision.active:
            self.add_item(fact, work_id=decision.work_id, active_key=key, position=position)
        else:
            self.inserts.append(
                work_row(fact, work_id=decision.work_id, active_key=None, state=State.BLOCKED, now=self.now, position=position)
            )

    def advance(self, decision: Advance, place: Place, run_after: datetime) -> None:
        """Move a selection forward, never back: a repaired, older input is represented by the selection that stands."""
        row = decision.row
        newest = latest((row.selection, place))
        if not is_proven(row.selection, newest):
            self.unproven.append((row, newest))
        self.advances.append(
            (row.id, newest.event_id, newest.ordinal, newest.created, newest.sequence, min(row.run_after, run_after))
        )
        if decision.activate:
            self.activations.append(row)

    def add_item(self, fact: Fact, *, work_id: str, active_key: str | None, position: int, replay_of: str | None = None) -> None:
        """A new live item: `blocked` behind a row that is ahead of it in its lane, else `pending` and blocking later ones."""
        state = State.PENDING
        if fact.lane and fact.run_after <= self.now:
            ahead = self.blocking.get(fact.lane)
            if ahead is not None and ahead[0] < position:
                state = State.BLOCKED
            else:
                # Our own uncommitted row: nobody ends it before we commit, and whoever does will see the rows behind it.
                self.blocking.setdefault(fact.lane, (position, 0))
        self.inserts.append(
            work_row(
                fact, work_id=work_id, active_key=active_key, state=state, now=self.now, position=position, replay_of=replay_of
            )
        )

    def write(self) -> None:
        """Set-based, in the order update, activate, insert. What `unproven` says has been evaluated by then."""
        for chunk in chunks(self.advances, KEYS_A_STATEMENT):
            WorkItem.objects.advance_generations([(*row[:3], to_db(row[3]), row[4], to_db(row[5])) for row in chunk])
        if self.activations:
            WorkItem.objects.activate_generations(sorted(row.id for row in self.activations))
            for row in self.activations:
                log_event("handoff_repaired", work_id=row.work_id, projection_key=row.projection_key)
        WorkItem.objects.insert_work_items(self.inserts)


def _keys_with_history(newcomers: Mapping[str, Fact]) -> set[str]:
    """Those of the keys (each with one of its facts) that retain a generation: their next WorkId is not the ProjectionKey."""
    keys = {fact.place.event_id: key for key, fact in newcomers.items()}
    return {keys[event_id] for chunk in chunks(keys, KEYS_A_STATEMENT) for event_id in WorkItem.objects.read_any_generation(chunk)}
