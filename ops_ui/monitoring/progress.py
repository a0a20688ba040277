"""Is the installation progressing: does what is due move on, and is nothing due for too long?

Alive and ready say that a process could work; this says that work is done. What nobody may take (a lane that is held, a route that is
paused, limited or parked) does not count, so that an operator's own act is no alarm. Work that was set aside while its route was blocked
counts from when it was open again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from django.conf import settings

from ops_ui.monitoring import counts
from projection import flows
from projection.database import clock
from projection.database.catalogue import Sender
from projection.database.clock import from_db
from projection.inspection.why import is_missing, live_flow_hashes
from projection.inspection.why_decision import ADD_APP
from projection.limits import availability, queue_classes, route_limits

ROUTE: Final = "route"
EXECUTE: Final = "execute"
RESTART_SECONDS: Final = 60
"""Work may wait so long with nobody alive to do it: a restart, or a host that is replaced."""
STUCK_ROUTER_SECONDS: Final = 120
"""A batch of receipts takes a second or two."""
STUCK_WORKERS_SECONDS: Final = settings.LONGEST_FLOW_TIMEOUT_SECONDS + 120
"""All threads of all workers may run flows of the longest time-out at once; then something ends."""

_sql: Final = Sender(Path(__file__).parent)
_known_classes: Final = set(queue_classes.WEIGHTS)
"""Of this process: every class that it met, those of set-aside work while there is any."""


@dataclass(frozen=True, slots=True)
class Due:
    """Since when the oldest of what is due waits in a stage and queue class. (Receipts have no class: it is empty.)"""

    stage: str
    queue_class: str
    since: datetime | None
    missing_flow: str = ""
    """The flow that it waits for, where no live worker has it."""

    def seconds(self, now: datetime) -> float:
        return 0.0 if self.since is None else max(0.0, (now - self.since).total_seconds())


@dataclass(frozen=True, slots=True)
class Stage:
    """What is known of a stage: its oldest due row, when it last did something, and how many of its processes are alive."""

    oldest: Due
    moved_at: datetime | None
    alive: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Why it does not progress, and what to look at. `kind`: `progress` (nothing moves) or `age` (too old, though things move)."""

    kind: str
    code: str
    reason: str


def findings() -> list[Finding]:
    """What stands in the way of progress, now; none: all is well. About eight statements. Raises the database's error."""
    now = clock.now()
    ages = _ages()
    judged = [judge(stage, now, settings.HEADRACE_AGE_LIMIT_SECONDS) for stage in _stages(now, ages)]
    found = [one for one in judged if one is not None]
    lacking = [sentence for due in ages if (sentence := _without_flow(due, now))]
    if lacking and judged[-1] is not None:
        return [replace(one, reason=" ".join([one.reason, *lacking])) if one is judged[-1] else one for one in found]
    return [*found, *(Finding("age", "no_flow", sentence) for sentence in lacking)]


def _without_flow(due: Due, now: datetime) -> str:
    """What is said of work that no worker can run: it keeps its lane, however long that takes. Empty: nothing."""
    waits = due.seconds(now)
    if not due.missing_flow or waits <= RESTART_SECONDS:
        return ""
    return f"{_work(due)} for {in_words(waits)}, but no running worker has its flow {due.missing_flow}. {ADD_APP}"


def due_ages() -> list[Due]:
    """One for each stage and queue class, as `_ages`."""
    return [due for due in _ages() if not due.missing_flow]


def _ages() -> list[Due]:
    """The oldest due row of the router, and of the workers in each queue class. Five statements, and one more for new routes or classes."""
    (receipt,) = _sql.fetch("read_oldest_due_receipt")
    named = {*queue_classes.WEIGHTS, *(row[0] for row in _sql.fetch("read_queue_classes"))}
    found: dict[str, list[datetime]] = {name: [] for name in named}
    missing: dict[str, tuple[datetime, str]] = {}
    for name, since, flow in _work_due(_classes(named)):
        queue_class = queue_classes.base(name)
        found.setdefault(queue_class, []).append(since)
        if flow:
            missing[queue_class] = min(missing.get(queue_class, (since, flow)), (since, flow))
    work = [Due(EXECUTE, name, min(moments, default=None)) for name, moments in sorted(found.items())]
    return [Due(ROUTE, "", from_db(receipt[0])), *work, *(Due(EXECUTE, name, *one) for name, one in sorted(missing.items()))]


def _classes(named: Iterable[str]) -> list[str]:
    """Every class with waiting work, set-aside ones (`default~42`) too. One statement, one more for each that this process did not know."""
    _known_classes.update(named)
    while True:
        there = {row[1] for row in queue_classes.read_due(_known_classes)}
        if there <= _known_classes:
            break
        _known_classes.update(there)
    _known_classes.difference_update([name for name in _known_classes - there if queue_classes.comes_and_goes(name)])
    return sorted(_known_classes)


def _work_due(classes: Sequence[str]) -> Iterator[tuple[str, datetime, str]]:
    """(queue class, since when, its flow if no live worker has that) of the oldest work of each route and class that could start."""
    asked = [(state.value, name) for name in classes for state in queue_classes.CLAIMABLE]
    rows = _sql.fetch_each("read_oldest_due_work", [(*one, *one) for one in asked])
    if not rows:
        return
    route_limits.learn(row[2] for row in rows)
    looked = availability.read(remembered=availability.REMEMBERED)
    for _, name, route_id, due in rows:
        since = looked.runnable_since(route_id, due)
        if since is not None:
            yield name, from_db(since), _missing_flow(route_id)


def _missing_flow(route_id: int) -> str:
    """One query where this very process has not got the flow; else none."""
    terms = route_limits.find(route_id)
    if terms is None or flows.find(terms.flow_name) is not None:
        return ""
    return terms.flow_name if is_missing(terms.flow_name, live_flow_hashes(clock.now())) else ""


def _stages(now: datetime, ages: Sequence[Due]) -> list[Stage]:
    moved: dict[str, list[datetime]] = {ROUTE: [], EXECUTE: []}
    for stage, at in _sql.fetch("read_movement"):
        if at is not None:
            moved[stage].append(from_db(at))
    alive = counts.workers_alive(now)
    return [
        Stage(_oldest([due for due in ages if due.stage == stage]), max(moved[stage], default=None), alive.get(kind, 0))
        for stage, kind in ((ROUTE, "router"), (EXECUTE, "worker"))
    ]


def _oldest(ages: Sequence[Due]) -> Due:
    """The one whose row waits for longest; the first of them where nothing waits."""
    return min(ages, key=lambda due: due.since or datetime.max.replace(tzinfo=UTC))


def judge(stage: Stage, now: datetime, age_limit_seconds: float) -> Finding | None:
    """The gravest finding of a stage: nobody is there, nobody moves, or it takes too long. A function of its arguments alone."""
    since, waits = stage.oldest.since, stage.oldest.seconds(now)
    if since is None:
        return None
    is_route = stage.oldest.stage == ROUTE
    who, what = ("router", "Deliveries have been waiting for a router") if is_route else ("worker", _work(stage.oldest))
    if not stage.alive and waits > RESTART_SECONDS:
        return Finding(
            "progress", f"no_{who}", f"{what} for {in_words(waits)}, but no {who} is online. Start the cluster (script/server)."
        )
    idle = (now - max(since, stage.moved_at or since)).total_seconds()
    if stage.alive and idle > (STUCK_ROUTER_SECONDS if is_route else STUCK_WORKERS_SECONDS):
        code = "router_stuck" if is_route else "workers_stuck"
        more = (
            "the router's log for errors, then restart it" if is_route else "script/manage work list, work show and the worker log"
        )
        return Finding(
            "progress", code, f"{what} and nothing has progressed for {in_words(idle)} although a {who} is online. Check {more}."
        )
    if waits > age_limit_seconds:
        code = "receipts_too_old" if is_route else "work_too_old"
        more = "the router's log" if is_route else "script/manage work list for slow flows, or start more workers"
        limit = in_words(age_limit_seconds)
        return Finding("age", code, f"{what} for {in_words(waits)}, longer than the limit of {limit}. Check {more}.")
    return None


def _work(due: Due) -> str:
    return f"Work of queue class {due.queue_class} has been due"


def in_words(seconds: float) -> str:
    """`90 s`, `12 min`, `5 h`: rounded down, so that a limit is never overstated."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
