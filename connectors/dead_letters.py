"""Dead letters: which there are, and what a replay of many would do, decided by set-based reads before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from connectors.retarget import current_targets, without_target
from connectors.traced import TracedItem
from connectors.work_filters import WorkFilter, work_items
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay import Deferred, Replayed, Result
from projection.replay_chains import read_chains
from projection.states import NONTERMINAL, ExecutionClass, State

T = TypeVar("T")
IDS_A_QUERY: Final = 1000
ITEMS_A_UNIT: Final = 100
"""Items replayed in one transaction: it holds the namespace, so it has to be short."""

Act = Callable[[Sequence[str]], Sequence[Result]]
"""Answers a part of a bulk, item by item."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One dead item of a bulk, as it was when the bulk's membership was fixed. `scope` None: it never waits for another's replay."""

    work_id: str
    scope: str | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead item and its replay, if it has one."""

    item: TracedItem
    replay_work_id: str | None
    replay_state: str | None


@dataclass(slots=True)
class Outcome:
    """What became of each item of a bulk. `deferred`: a replay of the same scope has to end first; run the bulk again after it."""

    replayed: list[Replayed] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    deferred: list[Deferred] = field(default_factory=list)


def dead_letters(chosen: WorkFilter, limit: int) -> list[DeadLetter]:
    """The newest undiscarded dead items that the filter selects, at most `limit`. Two queries beside those of the filter."""
    rows = work_items(replace(chosen, states=(State.DEAD,))).filter(discarded_at=None).order_by("-terminal_at", "-id")[:limit]
    items = [TracedItem.of(row) for row in rows]
    replays = _replays([item.work_id for item in items])
    return [DeadLetter(item, *replays.get(item.work_id, (None, None))) for item in items]


def candidates(chosen: WorkFilter, *, unreplayed: bool) -> list[Candidate]:
    """All undiscarded dead items that the filter selects (`unreplayed`: without a replay), in lane order: a bulk's fixed membership.

    Where a replay died it is a dead item itself, and stands for what it replays.
    """
    rows = work_items(replace(chosen, states=(State.DEAD,))).filter(discarded_at=None).order_by("lane_key", "lane_position", "id")
    found = [_candidate(*row) for row in rows.values_list("work_id", "execution_class", "source_scope_key")]
    replays = _replays([one.work_id for one in found]) if unreplayed else {}
    return [one for one in found if one.work_id not in replays]


def named(work_ids: Sequence[str]) -> list[Candidate]:
    """The given WorkIds in lane order; unknown ones last, to be refused. Nothing is left out."""
    wanted = list(dict.fromkeys(work_ids))
    rows = WorkItem.objects.filter(work_id__in=[one for one in wanted if one.isascii()]).order_by("lane_key", "lane_position", "id")
    known = [_candidate(*row) for row in rows.values_list("work_id", "execution_class", "source_scope_key")]
    found = {one.work_id for one in known}
    return known + [Candidate(work_id, None) for work_id in wanted if work_id not in found]


def replay_all(bulk: Sequence[Candidate], act: Act) -> Outcome:
    """Replay a bulk, ITEMS_A_UNIT at a time; of two items of one scope the second is deferred until the first replay has ended."""
    outcome = Outcome()
    taken: dict[str, str] = {}
    for start in range(0, len(bulk), ITEMS_A_UNIT):
        part = bulk[start : start + ITEMS_A_UNIT]
        outcome.deferred += [_same_source(one, taken[one.scope]) for one in part if one.scope in taken and one.scope is not None]
        free = [one for one in part if one.scope not in taken]
        for one, result in zip(free, act([one.work_id for one in free]), strict=True):
            if isinstance(result, Refused):
                outcome.refused.append(result)
            elif isinstance(result, Deferred):
                outcome.deferred.append(result)
            else:
                outcome.replayed.append(result)
                taken |= {one.scope: one.work_id} if one.scope else {}
    return outcome


def not_found(work_id: str) -> Refused:
    return Refused(work_id, "not_found", f"there is no work item {work_id}")


def _same_source(one: Candidate, first: str) -> Deferred:
    return Deferred(one.work_id, "same_source", f"the replay of {first}, of the same source, has to end first; ask again after it")


def preview(bulk: Sequence[Candidate], *, retarget: bool = False) -> Act:
    """What a replay would answer as things stand, without writing; the new WorkId is left empty.

    Not seen beforehand: `no_class_proof`, `class_change` and `kind_change`, which need each item's event.

    Reads the whole bulk's state at once: four queries for each 1,000 items, one more for each level of replay.
    """
    work_ids = [one.work_id for one in bulk if one.work_id.isascii()]
    standing = _each(work_ids, lambda ids: WorkItem.objects.filter(work_id__in=ids).values_list("work_id", "state", "discarded_at"))
    states = {work_id: "discarded" if discarded_at else state for work_id, state, discarded_at in standing}
    replays = _newest_replays(work_ids)
    active = _active_scopes([one.scope for one in bulk if one.scope])
    by_id = {one.work_id: one for one in bulk}
    targets = current_targets(work_ids) if retarget else {}

    def answer(part: Sequence[str]) -> list[Result]:
        results: list[Result] = []
        taken: dict[str, str] = {}
        for one in (by_id[work_id] for work_id in part):
            if retarget and targets.get(one.work_id) is None:
                results.append(without_target(one.work_id, targets))
                continue
            verdict = judge(one.work_id, states.get(one.work_id), replays.get(one.work_id), active.get(one.scope or ""))
            if isinstance(verdict, Replayed) and one.scope:
                first = taken.setdefault(one.scope, one.work_id)
                results.append(verdict if first == one.work_id else _same_source(one, first))
            else:
                results.append(verdict)
        return results

    return answer


def judge(work_id: str, state: str | None, replay: tuple[str, str] | None, blocker: str | None) -> Replayed | Refused:
    """Whether a replay of an item would be allowed, given its state, its replay (WorkId, state) and what is active in its scope."""
    if state is None:
        return not_found(work_id)
    if state == "discarded":
        return Refused(work_id, "discarded", f"{work_id} was discarded")
    if state != State.DEAD:
        return Refused(work_id, "not_dead", f"{work_id} is {state}; only dead items are replayed")
    if replay is not None and replay[1] not in (State.DEAD, State.CANCELLED):
        return Refused(work_id, "already_replayed", f"already replayed as {replay[0]} (it is {replay[1]})")
    if blocker is not None:
        return Refused(work_id, "active_generation", f"{blocker} is active for the same source; replay again once it has ended")
    return Replayed(work_id, "")


def _each(values: Sequence[T], query: Callable[[Sequence[T]], Iterable[tuple[Any, ...]]]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(values), IDS_A_QUERY):
        yield from query(values[start : start + IDS_A_QUERY])


def _candidate(work_id: str, execution_class: str, scope: str) -> Candidate:
    return Candidate(work_id, scope if execution_class == ExecutionClass.PROJECTION else None)


def _replays(work_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Replayed WorkId → (WorkId, state) of its replay."""
    rows = _each(
        work_ids,
        lambda ids: WorkItem.objects.filter(replay_of_work_id__in=ids).values_list("replay_of_work_id", "work_id", "state"),
    )
    return {str(of): (work_id, state) for of, work_id, state in rows}


def _newest_replays(work_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Replayed WorkId → (WorkId, state) of the newest of its replays, at the end of the chain."""
    newest: dict[int, list[str]] = {}
    for start in range(0, len(work_ids), IDS_A_QUERY):
        for work_id, chain in read_chains(work_ids[start : start + IDS_A_QUERY]).items():
            if len(chain.ids) > 1:
                newest.setdefault(chain.ids[-1], []).append(work_id)
    rows = _each(sorted(newest), lambda ids: WorkItem.objects.filter(id__in=ids).values_list("id", "work_id", "state"))
    return {of: (work_id, state) for id, work_id, state in rows for of in newest[id]}


def _active_scopes(scopes: Sequence[str]) -> dict[str, str]:
    """Source scope → WorkId of a nonterminal generation of it."""
    rows = _each(
        sorted(set(scopes)),
        lambda ids: WorkItem.objects.filter(
            source_scope_key__in=ids, state__in=sorted(NONTERMINAL), execution_class=ExecutionClass.PROJECTION
        ).values_list("source_scope_key", "work_id"),
    )
    return {str(scope): work_id for scope, work_id in rows}
