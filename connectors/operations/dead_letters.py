"""Dead letters: which there are, and what a replay of many would do, decided by set-based reads before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from connectors.operations.retarget import current_targets, present, without_target
from connectors.operations.traced import TracedItem
from connectors.operations.work_filters import WorkFilter, work_items
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.preview import ReplayPreview
from projection.replay.replay import Deferred, Replayed, Result
from projection.states import ExecutionClass, State

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


def replay_all(bulk: Sequence[Candidate], act: Act, items: int = ITEMS_A_UNIT) -> Outcome:
    """Replay a bulk, `items` at a time; of two items of one scope the second is deferred until the first replay has ended."""
    outcome = Outcome()
    taken: dict[str, str] = {}
    for start in range(0, len(bulk), items):
        part = bulk[start : start + items]
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


def _same_source(one: Candidate, first: str) -> Deferred:
    return Deferred(one.work_id, "same_source", f"the replay of {first}, of the same source, has to end first; ask again after it")


def preview_all(bulk: Sequence[Candidate], *, retarget: bool = False) -> tuple[Outcome, set[str]]:
    """What `replay_all` would come to as things stand, new WorkIds empty, and which of it would run after newer work succeeded."""
    preview = ReplayPreview()
    outcome = replay_all(bulk, lambda work_ids: answer(preview, work_ids, retarget=retarget), IDS_A_QUERY)
    return outcome, preview.after_newer


def answer(preview: ReplayPreview, work_ids: Sequence[str], *, retarget: bool) -> list[Result]:
    """The preview's answers to a part of a bulk; `retarget`: under the current version of each item's route."""
    if not retarget:
        return preview.answer(work_ids)
    targets = current_targets(work_ids)
    aims = present(targets)
    possible = [work_id for work_id in work_ids if work_id in aims]
    known = dict(zip(possible, preview.answer(possible, aims), strict=True))
    return [known.get(work_id) or without_target(work_id, targets) for work_id in work_ids]


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
