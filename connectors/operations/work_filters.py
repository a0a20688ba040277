"""Filters over work items: what `work list` and `dlq` select by, with names resolved to rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Length

from connectors import durations
from connectors.models import Pack, Route
from projection.database import clock
from projection.database.catalogue import Sender
from projection.facts import companion_of
from projection.models import Event, WorkItem
from projection.states import State

_sql: Final = Sender(Path(__file__).parent)
ROWS_OF_A_SOURCE: Final = 10_000
"""Work items that a source filter looks at, the newest: far above what one record ever has waiting or dead."""


TIMES: Final = ("since", "until")


class UnknownName(LookupError):
    """A filter names a route or pack that never existed; the message names the ones that there are."""


@dataclass(frozen=True, slots=True)
class WorkFilter:
    """Empty members do not filter. `error` is part of the last error's text, or (the start of) its fingerprint; `fingerprint` the whole
    of it; `source` an id, `type:id` or lane, of every account but where `account` names one; times bound TerminalAt for ended work and
    CreatedDate for any other; `work` WorkIds."""

    states: tuple[State, ...] = tuple(State)
    route: str = ""
    pack: str = ""
    flow: str = ""
    source: str = ""
    account: str = ""
    error: str = ""
    since: datetime | None = None
    until: datetime | None = None
    fingerprint: str = ""
    work: tuple[str, ...] = ()
    unreplayed: bool = False
    """Of a bulk over dead letters: only those without a replay, also where it could act on the others."""

    @property
    def is_empty(self) -> bool:
        """Selects everything of its states."""
        return self == WorkFilter(states=self.states)


def work_items(chosen: WorkFilter) -> QuerySet[WorkItem]:
    """The work items that the filter selects, in no order. Raises UnknownName. At most three queries to resolve names."""
    rows = _without_source(chosen)
    return rows.filter(id__in=ids_of_source(chosen)) if chosen.source else rows


def dead_items(chosen: WorkFilter, *, unreplayed: bool) -> QuerySet[WorkItem]:
    """All undiscarded dead items that the filter selects, in no order; `unreplayed`: without a replay. Raises UnknownName.

    Where a replay died it is a dead item itself, and stands for what it replays. Every condition is one of the row itself, for callers
    that go through a large table page by page; there is no limit to the items of a source. Of items that are named by their WorkIds
    none is left out: what cannot be done to one is told by its name.
    """
    rows = all_dead(chosen)
    if chosen.work:
        return rows
    rows = rows.filter(discarded_at=None)
    return without_replay(rows) if unreplayed or chosen.unreplayed else rows


def without_replay(rows: QuerySet[WorkItem]) -> QuerySet[WorkItem]:
    """Those of the rows that nothing replays. One look-up of the unique ReplayOfWorkId for each."""
    return rows.filter(~Exists(WorkItem.objects.filter(replay_of_work_id=OuterRef("work_id"))))


def all_dead(chosen: WorkFilter) -> QuerySet[WorkItem]:
    """As `dead_items`, with the discarded and the replayed ones."""
    rows = _without_source(replace(chosen, states=(State.DEAD,)))
    if chosen.source:
        text = chosen.source
        lane = Q(source_lane=text, lane_length=len(text))
        rows = rows.alias(lane_length=Length("source_lane")).filter(lane | Q(Exists(_events_of_source(text))))
    return rows


def to_json(chosen: WorkFilter) -> str:
    """What the filter selects by, without its states, as text; times absolute. `from_json` reads it again."""
    members = {name: value for name, value in asdict(chosen).items() if value and name != "states"}
    return json.dumps({name: value.isoformat() if isinstance(value, datetime) else value for name, value in members.items()})


def from_json(text: str) -> WorkFilter:
    """A filter of all states, as `to_json` wrote it."""
    members: dict[str, Any] = json.loads(text)
    members |= {name: datetime.fromisoformat(members[name]) for name in TIMES if name in members}
    return WorkFilter(**members | {"work": tuple(members.get("work", ()))})


def _without_source(chosen: WorkFilter) -> QuerySet[WorkItem]:
    rows = WorkItem.objects.filter(state__in=chosen.states)
    if chosen.route:
        rows = rows.filter(route_id__in=_route_ids(chosen.route))
    if chosen.pack:
        rows = rows.filter(pack_id__in=_pack_ids(chosen.pack))
    if chosen.account:
        rows = rows.filter(account=chosen.account)
    if chosen.flow:
        pack, flow = companion_of(chosen.flow)
        rows = rows.filter(companion_pack=pack, companion_flow=flow)
    if chosen.error:
        rows = rows.filter(_has_error(chosen.error))
    if chosen.fingerprint:
        rows = rows.filter(error_fingerprint__in=_ascii([chosen.fingerprint]))
    if chosen.work:
        rows = rows.filter(work_id__in=_ascii(chosen.work))
    time = "terminal_at" if set(chosen.states) == {State.DEAD} else "created_date"
    if chosen.since:
        rows = rows.filter(**{f"{time}__gte": chosen.since})
    if chosen.until:
        rows = rows.filter(**{f"{time}__lt": chosen.until})
    return rows


def moment(text: str) -> datetime:
    """A time argument: ISO 8601 (without zone: UTC), or a duration before now such as `2h`. Raises ValueError naming both forms."""
    at: datetime | None = None
    with suppress(ValueError):
        at = datetime.fromisoformat(text)
    try:
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC) if at else clock.now() - timedelta(seconds=_ago(text))
    except OverflowError:
        raise ValueError(f"{text!r} is not in the years 1 to 9999 (UTC)") from None


def _ago(text: str) -> float:
    try:
        return durations.seconds(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a valid time; write ISO 8601 (2026-01-31T10:00:00Z) or how long ago (2h, 7d)") from None


def _has_error(text: str) -> Q:
    condition = Q(last_error__contains=text)
    return condition | Q(error_fingerprint__startswith=text) if text.isascii() else condition


def _ascii(keys: Sequence[str]) -> list[str]:
    """Those that a key column can be compared with; no key is anything else."""
    return [key for key in keys if key.isascii()]


def _route_ids(key: str) -> list[int]:
    ids = list(Route.objects.filter(route_key=key).values_list("id", flat=True))
    if not ids:
        known = Route.objects.filter(is_current=True).order_by("route_key").values_list("route_key", flat=True).distinct()
        raise UnknownName(f"there is no route {key!r}; known: {', '.join(known) or 'none'}")
    return ids


def _pack_ids(name: str) -> list[int]:
    ids = list(Pack.objects.filter(name=name).values_list("id", flat=True))
    if not ids:
        known = Pack.objects.order_by("name").values_list("name", flat=True).distinct()
        raise UnknownName(f"there is no pack {name!r}; known: {', '.join(known) or 'none'}")
    return ids


def _events_of_source(text: str) -> QuerySet[Event]:
    """The selected event of an item, if it is of the source `id` or `type:id`; lengths, because a collation ignores spaces at the end."""
    names = Q(source_id=text, id_length=len(text))
    for at in (at for at, sign in enumerate(text) if sign == ":"):
        type, id = text[:at], text[at + 1 :]
        names |= Q(source_type=type, type_length=len(type), source_id=id, id_length=len(id))
    events = Event.objects.alias(type_length=Length("source_type"), id_length=Length("source_id"))
    return events.filter(names, id=OuterRef("event_id"))


def ids_of_source(chosen: WorkFilter) -> set[int]:
    """Newest items whose lane or selected event is of the source; compared exactly, whatever the collation."""
    text = chosen.source
    lanes = WorkItem.objects.filter(source_lane=text, state__in=chosen.states).order_by("-id")
    found = {id for id, lane in lanes.values_list("id", "source_lane")[:ROWS_OF_A_SOURCE] if lane == text}
    candidates = (text, *(text[at + 1 :] for at, sign in enumerate(text) if sign == ":"))
    rows = _sql.fetch("read_items_of_source", source_ids=candidates, states=tuple(chosen.states), limit=ROWS_OF_A_SOURCE)
    return found | {id for id, type, source_id in rows if text in (source_id, f"{type}:{source_id}")}
