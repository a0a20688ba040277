"""The model test finds faults: with one planted in the product, a few histories disagree with the reference.

Each fault is a slip that somebody could make in one function or one statement of the protocol's core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import projection
from projection.admission import admit, generations, materialize, older_workers, settle
from projection.admission import rows as admission_rows
from projection.claiming import rescue
from projection.completion import complete, lanes
from projection.database.catalogue import catalogue
from projection.execution import attempts
from projection.inputs import ranges
from projection.managers import WorkItemManager
from projection.replay import decision as replay_decision
from tests.model.beginning import Beginning
from tests.model.exploring import draw
from tests.model.history import Disagreement

Plant = Callable[[pytest.MonkeyPatch], None]
SQL = Path(projection.__file__).parent
ENOUGH = 1_500
"""Histories after which a fault counts as not found; most are found within ten, the rarest by one in 130."""
SOON_WITH = {
    "duplicates of retired routes repeat": 32,
    "what an old binary leases uses up a claim": 23,
    "what an old binary runs is taken from it": 1,
    "what an old binary has run runs again": 1,
    "a patient route never gives up": 13,
    "settling work blocks its lane": 5,
    "a lost lease writes": 1,
    "a union may lose an input": 459,
}
"""Numbers whose first few histories find a rare fault."""
A_FEW = 3


def function(module: Any, name: str, fault: Callable[..., Any]) -> Plant:
    """`fault` instead of a function; it is given the true one first."""
    true = getattr(module, name)
    return lambda patch: patch.setattr(module, name, lambda *args, **kwargs: fault(true, *args, **kwargs))


def text(name: str, true: str, fault: str) -> Plant:
    """Another text in a statement."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        statement = catalogue(SQL)[name]
        assert true in statement
        patch.setitem(catalogue(SQL), name, statement.replace(true, fault))

    return plant


def both(one: Plant, other: Plant) -> Plant:
    """A rule that is kept in two places."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        one(patch)
        other(patch)

    return plant


FAULTS: dict[str, Plant] = {
    "an unclaimed replay takes new events": function(materialize, "decide", lambda true, key, head, rows, is_first: true(
        key, head, [replace(row, replay_of_work_id=None) for row in rows], is_first=is_first)),
    "a claimed generation takes new events": function(generations, "is_frozen", lambda true, active: active.is_replay),
    "a later selection runs at once": function(WorkItemManager, "advance_generations", lambda true, self, selections: true(
        self, [(*row[:-1], row[3]) for row in selections])),
    "no handoff to the successor": function(complete, "_activate", lambda true, keys: []),
    "nobody unblocks the lane": function(lanes, "unblock_next", lambda true, ended, blocking=None: 0),
    "settling work blocks its lane": function(lanes, "blocks", lambda true, state, run_after, now: True),
    "a lane is claimed beside its holder": text("preselect_work_items", "h.LaneHolderKey = c.LaneKey", "h.LaneHolderKey = 'x'"),
    "the first of a lane is not first": text("preselect_work_items", "f.LanePosition, f.Id LIMIT", "f.LanePosition DESC, f.Id LIMIT"),
    "a hold is forgotten": both(text("preselect_work_items", "x.LaneKey = c.LaneKey", "x.LaneKey = 'x'"),
        text("claim_work_items", "x.LaneKey = `_System_ConnectorWorkItem`.LaneKey", "x.LaneKey = 'x'")),
    "every admission settles anew": function(settle, "deadlines", lambda true, events, now: {
        key: now + event.route.settle for event in events
        if event.route and event.route.settle_seconds and (key := admission_rows.key_of(event))}),
    "only history bounds a range": text(
        "read_lower_bounds", "p.ReplayOfWorkId IS NULL", "p.ReplayOfWorkId IS NULL AND p.TerminalAt IS NOT NULL"),
    "replay events are inputs": text("read_inputs", "AND ReplayOfEventId IS NULL", ""),
    "a replay has its own inputs only": function(ranges, "_inputs", lambda true, one, roots, events: true(one, roots, events)[-1:]),
    "a lost lease writes": both(function(WorkItemManager, "lock_leases", lambda true, self, ids, tokens: set(product(ids, tokens))),
        text("complete_claimed_work_items", "AND LeaseToken IN %(tokens)s", "")),
    "a hand-back uses the budget": function(WorkItemManager, "retry_claimed_work_items", lambda true, self, delays: true(
        self, [(item, delay, 0) for item, delay, _ in delays])),
    "a lost worker uses no attempt": function(rescue, "judge", lambda true, row, leases: replace(true(row, leases), counts=False)),
    "a lost worker's neighbours lose an attempt": function(rescue, "judge", lambda true, row, leases: replace(
        true(row, leases), counts=True)),
    "a suspect runs among others": text("suspect_work_items", "31), '!')", "31))"),
    "duplicates of retired routes repeat": function(admit, "find_known", lambda true, events: true(
        [replace(event, sibling_keys=()) for event in events])),
    "a replay passes a live generation": function(replay_decision, "_refusal", lambda true, work_id, rows, active: true(work_id, rows, {})),
    "a replay starts at the first death again": function(replay_decision, "_refusal", lambda true, work_id, rows, active: true(
        work_id, rows[:1], active)),
    "a retry lets its lane go": text("retry_claimed_work_items", "LeaseOwner = NULL", "LaneHolderKey = NULL, LeaseOwner = NULL"),
    "a retry comes a moment early": function(WorkItemManager, "retry_claimed_work_items", lambda true, self, delays: true(
        self, [(item, max(0, delay - 1), back) for item, delay, back in delays])),
    "namespaces share their lanes": function(admission_rows, "lane_key", lambda true, namespace, *rest: true("default", *rest)),
    "a union may lose an input": function(materialize, "refuse_losses", lambda true, replacements: None),
    "rows from before ordinals are bounded by ordinals": text("read_lower_bounds", "z.EnqueueOrdinal = 0", "z.EnqueueOrdinal < 0"),
    "what an old binary leases uses up a claim": text("preselect_work_items", "AND e.LeaseToken IS NOT NULL", "AND e.LeaseToken = 'x'"),
    "what an old binary runs is taken from it": both(
        text("preselect_work_items", "AND e.LeaseToken IS NOT NULL", "AND e.LeaseToken = 'x'"),
        text("fence_events", "AND (LeaseToken IS NULL OR LeaseExpiresAt <= UTC_TIMESTAMP(6))", "")),
    "a claim leaves the event to the old binary": function(older_workers, "fence", lambda true, events: set(events)),
    "what an old binary has run runs again": function(older_workers, "copy_results", lambda true, events: 0),
    "projections run before activation": text("preselect_work_items", "%(activated)s = 1 OR", "TRUE OR"),
    "a patient route never gives up": function(attempts, "after_failure", lambda true, policy, attempt, age: true(policy, attempt, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(beginning: Beginning, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    FAULTS[name](monkeypatch)
    with pytest.raises((Disagreement, pytest.fail.Exception)):  # the latter: the product did not refuse what it must
        look_for(beginning, name)


def look_for(beginning: Beginning, name: str) -> None:
    """Play histories until one disagrees."""
    if name in SOON_WITH:
        draw(beginning, SOON_WITH[name], A_FEW)
    draw(beginning, 0, ENOUGH)
