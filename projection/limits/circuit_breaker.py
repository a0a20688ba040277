"""The breaker of a destination: while it is away nothing of its work is claimed, so no budget is burned (docs/protocol.md#outages).

Failures in a row open it: so many, of different items unless no item can be at fault. Then the destination is parked, each time longer;
after each pause one item is let through, and its success closes the breaker. A Retry-After parks at once, for as long as it says.
Healthy destinations cost nothing: no row of theirs is read or written.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from projection.database.catalogue import by_id, execute, fetch, insert_rows
from projection.database.transactions import is_server_conflict, run_unit
from projection.facts import ALIVE, ITEM_ONLY, Outage, Seen
from projection.identity import digest
from projection.leases import Ending
from projection.logs import log_event
from projection.runtime.wake_up import notify
from projection.states import State

FAILURES: Final = 5
"""So many outages in a row open the breaker. One item that makes a destination fail counts once."""
FIRST_PAUSE_SECONDS: Final = 5.0
LONGEST_PAUSE_SECONDS: Final = 300.0
"""Each pause is twice the one before, up to this: a destination that is back is noticed within five minutes."""
LONGEST_PAUSE_OF_ONE_SECONDS: Final = 30.0
"""As long as one item alone keeps failing, the item may be at fault, and others that come must not wait long."""
JITTER_SHARE: Final = 0.1
PROBE_SECONDS: Final = 60.0
"""So long an item that was let through has to tell: longer than a flow's usual time-out. Then the next one is tried."""

WRITTEN_TOGETHER: Final = timedelta(seconds=1)
"""Attempts that end together are written together: their outcomes first, then their failures."""

CLOSED, FAILING, ASKED, OPEN, HALF_OPEN = "closed", "failing", "asked", "open", "half_open"
"""Healthy · failed, but not often enough · asked us to wait (Retry-After) · away · one item is let through."""
TROUBLED: Final = (FAILING, ASKED, OPEN, HALF_OPEN)

Outcome = tuple[str, Outage | Seen]
"""(WorkId, what its attempt says of the destination)."""

_troubled: set[str] = set()
"""Destinations in any kind of trouble, as far as this process has heard: only their successes are worth writing down."""


@dataclass(frozen=True, slots=True)
class Health:
    """A destination's row. Times are naive, the database's."""

    state: str = CLOSED
    failures: int = 0
    """In a row."""
    openings: int = 0
    """In a row, so the next pause is known."""
    last_work_id: str = ""
    parked_at: datetime | None = None
    parked_until: datetime | None = None
    last_error: str = ""
    succeeded_at: datetime | None = None
    """When an item got through last, while the destination was in trouble; healthy ones write nothing."""

    def is_parked(self, now: datetime) -> bool:
        return self.parked_until is not None and self.parked_until > now


def after(health: Health, outcomes: Iterable[Outcome], now: datetime, *, chance: Callable[[], float] = random.random) -> Health:
    """The pure decision: a destination's health after these outcomes, in order."""
    for work_id, outcome in outcomes:
        if isinstance(outcome, Outage):
            health = _after_outage(health, work_id, outcome, now, chance)
        elif outcome is ITEM_ONLY:
            health = _after_item(health, work_id, now)
        elif health.state == ASKED and health.is_parked(now):
            health = replace(
                health, failures=0, openings=0, succeeded_at=now
            )  # it still asks to wait: what was under way came through
        else:
            health = Health(last_error=health.last_error, succeeded_at=now)
    return health


def _after_item(health: Health, work_id: str, now: datetime) -> Health:
    """It takes others, and is watched, so that the next success is written down. If this item was to try it, another may try now."""
    state = FAILING if health.state == CLOSED else health.state
    until = now if state == HALF_OPEN else health.parked_until
    return replace(health, state=state, last_work_id=work_id, parked_until=until)


def _after_outage(health: Health, work_id: str, outage: Outage, now: datetime, chance: Callable[[], float]) -> Health:
    is_same = work_id == health.last_work_id
    counts = outage.certain or not is_same
    health = replace(health, failures=health.failures + counts, last_work_id=work_id, last_error=outage.reason)
    if outage.retry_after is not None:
        until = now + timedelta(seconds=outage.retry_after)
        since = health.parked_at if health.is_parked(now) else now
        asked = health.parked_until if health.state != HALF_OPEN else None  # else it is only how long the item had to tell
        return replace(health, state=ASKED, parked_at=since, parked_until=max(until, asked or until))
    if health.state != HALF_OPEN and health.is_parked(now):
        return health  # it was under way when the breaker opened
    if health.failures < FAILURES:
        return replace(health, state=FAILING, parked_until=None)
    longest = LONGEST_PAUSE_OF_ONE_SECONDS if is_same else LONGEST_PAUSE_SECONDS
    pause = min(longest, FIRST_PAUSE_SECONDS * 2.0 ** min(health.openings, 20))
    until = now + timedelta(seconds=pause * (1 + JITTER_SHARE * (2 * chance() - 1)))
    since = health.parked_at if health.openings else now
    return replace(health, state=OPEN, openings=health.openings + 1, parked_at=since, parked_until=until)


def blame(endings: Sequence[Ending]) -> list[Ending]:
    """The endings, of an item to which its destination said "not now" the one that blames the item, where another got through since it
    failed before (docs/protocol.md#outages). No statement while all is well, else two.
    """
    asked = [one for one in endings if one.blamed is not None and one.destination]
    if not asked:
        return list(endings)
    keys, ids = tuple({key_of(one.destination) for one in asked}), tuple(sorted({one.item_id for one in asked}))
    succeeded = dict(fetch("read_successes", keys=keys))
    failed = dict(fetch("read_last_failures", ids=ids)) if succeeded else {}
    guilty = {
        one.lease
        for one in asked
        if (at := succeeded.get(one.destination)) is not None
        and (before := failed.get(one.item_id)) is not None
        and before <= at + WRITTEN_TOGETHER
    }
    return [one.blamed if one.blamed is not None and one.lease in guilty else one for one in endings]


def record(endings: Sequence[Ending]) -> set[str]:
    """Take down what ended attempts say of their destinations; the destinations that are parked now.

    No statement while all is well. A unit of its own of four statements at most.
    """
    outcomes = _outcomes(endings)
    names = [name for name, seen in outcomes.items() if name in _troubled or any(one is not ALIVE for _, one in seen)]
    if not names:
        return set()
    keys = {key_of(name): name for name in names}
    missing = keys.keys() - _ids(keys).values()
    if missing:
        rows = [(key, keys[key], CLOSED, 0, 0, "", "") for key in sorted(missing)]
        run_unit("record", lambda: insert_rows("insert_destinations", rows), retry_on=is_server_conflict)
    healths = run_unit("record", lambda: _record({name: outcomes[name] for name in names}), retry_on=is_server_conflict)
    hear(name for name, (health, _) in healths.items() if health.state != CLOSED)
    _troubled.difference_update(name for name, (health, _) in healths.items() if health.state == CLOSED)
    return {name for name, (health, now) in healths.items() if health.is_parked(now)}


def _outcomes(endings: Sequence[Ending]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for ending in endings:
        seen = ALIVE if ending.state in (State.PROCESSED, State.SKIPPED) else ending.seen
        if seen is not None and ending.destination:
            found.setdefault(ending.destination, []).append((ending.work_id, seen))
    return found


def _record(outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, tuple[Health, datetime]]:
    """Joins the caller's transaction. Rows by ascending id."""
    healths: dict[str, tuple[Health, datetime]] = {}
    changed: list[tuple[Any, ...]] = []
    for id, name, now, *columns in _lock(_ids(map(key_of, outcomes))):
        before = Health(*columns)
        health = after(before, outcomes[name], now)
        healths[name] = (health, now)
        if health != before:
            changed.append((id, *(getattr(health, field) for field in Health.__slots__)))
            _say(name, before, health)
    if changed:
        columns = ("State", "Failures", "Openings", "LastWorkId", "ParkedAt", "ParkedUntil", "LastError", "SucceededAt")
        parts, values = by_id(columns, changed)
        execute("update_destinations", [*values, tuple(row[0] for row in changed)], **parts)
    return healths


def _ids(keys: Iterable[str]) -> dict[int, str]:
    """Row → key of each destination that has one."""
    return dict(fetch("read_destination_ids", keys=tuple(keys)))


def _lock(ids: Collection[int]) -> list[Any]:
    """(id, name, database time, the columns of a Health) of the rows, locked by ascending id."""
    return fetch("lock_destinations", ids=tuple(sorted(ids))) if ids else []


def _say(name: str, before: Health, health: Health) -> None:
    if health.state in (OPEN, ASKED) and health.parked_until != before.parked_until:
        log_event(
            "park",
            level="warning",
            destination=name,
            until=str(health.parked_until),
            count=health.failures,
            error=health.last_error,
        )
    elif health.state == CLOSED and before.parked_until is not None:
        log_event("unpark", destination=name)


def hear(names: Iterable[str]) -> None:
    """Learn of destinations that are in trouble."""
    _troubled.update(names)


def key_of(name: str) -> str:
    """Identity of a destination, which no collation decides."""
    return digest("destination", name)


def end_park(name: str, *, note: Callable[[bool], object] | None = None) -> bool:
    """Let it be tried at once; False: it is not parked. A unit of its own; `note` as in `run_unit`."""
    ended = run_unit("unpark", lambda: execute("end_park", key=key_of(name)) == 1, retry_on=is_server_conflict, note=note)
    if ended:
        notify("claim")
    return ended


# ---- the claim's side


@dataclass(frozen=True, slots=True)
class Probe:
    """A destination whose pause is over, locked: one item may be let through."""

    id: int
    name: str
    last_work_id: str = ""
    """The item that failed last: it tries only if no other waits."""


def lock_probes(ids: Mapping[int, str]) -> dict[str, Probe]:
    """Of these destinations those that still may be tried, locked by ascending id, before limits and work items. One statement."""
    return {
        row[1]: Probe(row[0], row[1], Health(*row[3:]).last_work_id)
        for row in _lock(ids)
        if row[3] != CLOSED and not Health(*row[3:]).is_parked(row[2])
    }


def last_failed(probes: Iterable[Probe], ids: Iterable[int]) -> set[int]:
    """Which of these items failed last of all for its destination. One statement, none for no probes."""
    failed = {probe.last_work_id for probe in probes} - {""}
    asked = tuple(sorted(ids))
    return {id for id, work_id in fetch("read_failed_last", ids=asked) if work_id in failed} if failed and asked else set()


def let_through(probes: Iterable[Probe]) -> None:
    """Nobody else tries these locked destinations until the item that was just taken has told. One statement."""
    ids = tuple(probe.id for probe in probes)
    if ids:
        execute("let_through", ids=ids, seconds=PROBE_SECONDS)


def forget() -> None:
    """What this process has heard (tests, another database)."""
    _troubled.clear()
