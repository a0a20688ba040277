"""The filter of the list of generations."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet

from ops_ui.console.lists.filters import (
    ListFilter,
    exact_filter,
    key_filter,
    route_choices,
)
from ops_ui.console.lists.keyset import Order
from projection.models import WorkItem
from projection.states import NONTERMINAL, State


class GenerationFilter(ListFilter):
    windowed = frozenset({"account", "route"})
    state = django_filters.ChoiceFilter(
        label="State", choices=[(s.value, s.value) for s in State], method="by_state", empty_label="any"
    )
    source = exact_filter("Source lane", "source_lane")
    account = exact_filter("Account", "account")
    work = key_filter("Work id", "work_id")
    route = django_filters.ChoiceFilter(label="Route", choices=route_choices, method="by_route", empty_label="any")

    class Meta:
        model = WorkItem
        fields: list[str] = []

    def by_state(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """A nonterminal row has no end, said so that ix_work_terminal (state, terminal, id) gives the rows in order of id."""
        return rows.filter(state=value, terminal_at=None) if State(value) in NONTERMINAL else rows.filter(state=value)

    def order(self) -> Order:
        """By state: ix_work_terminal (state, ended, id); else the primary key."""
        given = self.given()
        state = given.get("state")
        index = "ix_work_terminal" if state and len(given) == 1 else ""
        return Order("terminal_at" if state and State(state) not in NONTERMINAL else "id", index=index)
