"""The filter of dead letters: one form, read as the list's rows and as what a bulk job takes (`WorkFilter`), so that both are the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import django_filters
from django.db.models import Exists, OuterRef, QuerySet

from connectors.operations.work_filters import WorkFilter, all_dead, dead_items, ids_of_source
from ops_ui.console.lists.filters import ListFilter, MomentFilter, exact_filter, key_filter, pack_choices, route_choices
from ops_ui.console.lists.keyset import Order
from projection.models import WorkItem
from projection.states import State

SHOWN: Final = (("replayed", "replayed"), ("discarded", "discarded"), ("all", "all"))
BY_DEATH: Final = Order("terminal_at", index="ix_work_terminal")
"""Where a quarter of all work is dead, a server would read the whole table for it. A source's ids are found otherwise."""
OPEN: Final = "open"
"""Neither replayed nor discarded: what somebody still has to look at."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a filter selects. `rows` and `open_rows` hold in `among`, which an index gives in order of death."""

    among: QuerySet[WorkItem]
    rows: QuerySet[WorkItem]
    open_rows: QuerySet[WorkItem]
    is_indexed: bool
    """`rows` are all of `among`: no search is needed."""
    order: Order


class DeadLetterFilter(ListFilter):
    """Over dead work items, newest death first (ix_work_terminal)."""

    route = django_filters.ChoiceFilter(label="Route", choices=route_choices, method="kept", empty_label="any")
    pack = django_filters.ChoiceFilter(label="Pack", choices=pack_choices, method="kept", empty_label="any")
    source = exact_filter("Source: id, type:id or lane", "source_lane", method="kept")
    account = exact_filter("Account", "account", method="kept")
    error = exact_filter("Error text", "last_error", method="kept")
    fingerprint = key_filter("Error fingerprint", "error_fingerprint", method="kept")
    since = MomentFilter(label="Failed after", method="kept")
    until = MomentFilter(label="Failed before", method="kept")
    show = django_filters.ChoiceFilter(label="Show", choices=SHOWN, method="kept", empty_label=OPEN)

    class Meta:
        model = WorkItem
        fields: list[str] = []

    def kept(self, rows: QuerySet[Any], _name: str, _value: str) -> QuerySet[Any]:
        """All conditions are made at once, from `work_filter`."""
        return rows

    def work_filter(self) -> WorkFilter:
        """What is chosen, `show` aside."""
        given = self.given()
        times: dict[str, datetime] = {name: given[name] for name in ("since", "until") if name in given}
        texts = {name: str(given[name]) for name in ("route", "pack", "source", "account", "error", "fingerprint") if name in given}
        return WorkFilter(states=(State.DEAD,), **texts, **times)  # type: ignore[arg-type]  # each member has its own type

    def bulk_filter(self) -> WorkFilter | None:
        """What a bulk over all that the list shows takes; None where it shows only what was dealt with."""
        show = self.given().get("show")
        return None if show in ("replayed", "discarded") else replace(self.work_filter(), unreplayed=show is None)

    def select(self) -> Chosen:
        """The rows. Two queries to resolve names, and three for a source."""
        return select(self.work_filter(), self.given().get("show"))


def select(chosen: WorkFilter, show: str | None = None) -> Chosen:
    """The dead letters of a filter; `show` as in the form, None: the open ones. Raises UnknownName."""
    chosen = replace(chosen, states=(State.DEAD,))
    timed = WorkFilter(states=chosen.states, since=chosen.since, until=chosen.until)
    among = all_dead(timed)
    order = replace(BY_DEATH, index="") if chosen.source else BY_DEATH
    if chosen.source:
        among = among.filter(id__in=ids_of_source(chosen))
        chosen = replace(chosen, source="")
    rest = replace(chosen, since=None, until=None)
    rows, open_rows = among & all_dead(rest), among & dead_items(rest, unreplayed=True)
    if show is None:
        rows = open_rows
    elif show == "discarded":
        rows = rows.exclude(discarded_at=None)
    elif show == "replayed":
        rows = rows.filter(Exists(WorkItem.objects.filter(replay_of_work_id=OuterRef("work_id"))))
    return Chosen(among, rows.defer("discard_reason"), open_rows, show == "all" and chosen == timed, order)
