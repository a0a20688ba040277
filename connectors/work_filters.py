"""Filters over work items: what `work list` and `dlq` select by, with names resolved to rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Q, QuerySet

from connectors import durations
from connectors.models import Pack, Route
from projection import clock
from projection.facts import companion_of
from projection.models import WorkItem
from projection.sending import fetch
from projection.states import State

ROWS_OF_A_SOURCE: Final = 10_000
"""Work items that a source filter looks at, the newest: far above what one record ever has waiting or dead."""


class UnknownName(LookupError):
    """A filter names a route or pack that never existed; the message names the ones that there are."""


@dataclass(frozen=True, slots=True)
class WorkFilter:
    """Empty members do not filter. `error` is part of the last error's text, or (the start of) its fingerprint; `source` an id,
    `type:id` or lane; times bound TerminalAt for ended work and CreatedDate for any other."""

    states: tuple[State, ...] = tuple(State)
    route: str = ""
    pack: str = ""
    flow: str = ""
    source: str = ""
    error: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Selects everything of its states."""
        return self == WorkFilter(states=self.states)


def work_items(chosen: WorkFilter) -> QuerySet[WorkItem]:
    """The work items that the filter selects, in no order. Raises UnknownName. At most three queries to resolve names."""
    rows = WorkItem.objects.filter(state__in=chosen.states)
    if chosen.route:
        rows = rows.filter(route_id__in=_route_ids(chosen.route))
    if chosen.pack:
        rows = rows.filter(pack_id__in=_pack_ids(chosen.pack))
    if chosen.flow:
        pack, flow = companion_of(chosen.flow)
        rows = rows.filter(companion_pack=pack, companion_flow=flow)
    if chosen.error:
        rows = rows.filter(_has_error(chosen.error))
    if chosen.source:
        rows = rows.filter(id__in=_ids_of_source(chosen))
    time = "terminal_at" if set(chosen.states) == {State.DEAD} else "created_date"
    if chosen.since:
        rows = rows.filter(**{f"{time}__gte": chosen.since})
    if chosen.until:
        rows = rows.filter(**{f"{time}__lt": chosen.until})
    return rows


def moment(text: str) -> datetime:
    """A time argument: ISO 8601 (without zone: UTC), or a duration before now such as `2h`. Raises ValueError naming both forms."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return clock.now() - timedelta(seconds=_ago(text))
    return at.replace(tzinfo=at.tzinfo or UTC)


def _ago(text: str) -> float:
    try:
        return durations.seconds(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; write ISO 8601 (2026-01-31T10:00:00Z) or how long ago (2h, 7d)") from None


def _has_error(text: str) -> Q:
    condition = Q(last_error__contains=text)
    return condition | Q(error_fingerprint__startswith=text) if text.isascii() else condition


def _route_ids(key: str) -> list[int]:
    ids = list(Route.objects.filter(route_key=key).values_list("id", flat=True))
    if not ids:
        known = Route.objects.filter(is_current=True).order_by("route_key").values_list("route_key", flat=True).distinct()
        raise UnknownName(f"there is no route {key!r}; known are: {', '.join(known) or 'none'}")
    return ids


def _pack_ids(name: str) -> list[int]:
    ids = list(Pack.objects.filter(name=name).values_list("id", flat=True))
    if not ids:
        known = Pack.objects.order_by("name").values_list("name", flat=True).distinct()
        raise UnknownName(f"there is no pack {name!r}; known are: {', '.join(known) or 'none'}")
    return ids


def _ids_of_source(chosen: WorkFilter) -> set[int]:
    """Newest items whose lane or selected event is of the source; compared exactly, whatever the collation."""
    text = chosen.source
    lanes = WorkItem.objects.filter(source_lane=text, state__in=chosen.states).order_by("-id")
    found = {id for id, lane in lanes.values_list("id", "source_lane")[:ROWS_OF_A_SOURCE] if lane == text}
    candidates = (text, *(text[at + 1 :] for at, sign in enumerate(text) if sign == ":"))
    rows = fetch("read_items_of_source", source_ids=candidates, states=tuple(chosen.states), limit=ROWS_OF_A_SOURCE)
    return found | {id for id, type, source_id in rows if text in (source_id, f"{type}:{source_id}")}
