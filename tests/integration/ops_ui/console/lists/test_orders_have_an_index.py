"""Which orders the lists have: each is of an index that ends with it, and that index is forced where it alone serves the filter."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.operations.work_filters import WorkFilter
from ops_ui.console.dead_letters.filter import BY_DEATH, select
from ops_ui.console.generations.filter import GenerationFilter
from ops_ui.console.lists import keyset
from ops_ui.console.lists.filters import ListFilter
from ops_ui.console.receipts.filter import ReceiptFilter
from projection.models import WorkItem
from projection.states import ReceiptState, State
from tests.support import rows

pytestmark = pytest.mark.usefixtures("database")

BY_STATE: list[tuple[type[ListFilter], str]] = [
    *((ReceiptFilter, state.value) for state in ReceiptState),
    *((GenerationFilter, state.value) for state in State),
]


def index_fields(model: Any, name: str) -> list[str]:
    return next(list(index.fields) for index in model._meta.indexes if index.name == name)


@pytest.mark.parametrize(("filters", "state"), BY_STATE)
def test_the_order_of_a_state_is_the_end_of_its_index(filters: type[ListFilter], state: str) -> None:
    model = filters._meta.model
    chosen = filters({"state": state}, queryset=model.objects.all())
    order = chosen.order()
    fields = index_fields(model, order.index)
    assert fields[0] == "state"
    assert fields[-2:] == (["terminal_at", "id"] if order.column == "id" else [order.column, "id"])
    assert f"FORCE INDEX ({order.index})" in keyset._forced(chosen.qs, order.index)[0]


@pytest.mark.parametrize(
    ("filters", "query"),
    [
        (ReceiptFilter, {"state": "routed", "delivery": "d"}),
        (GenerationFilter, {"state": "dead", "source": "contact:1"}),
        (GenerationFilter, {"state": "pending", "work": "csp:1"}),
        (GenerationFilter, {"source": "contact:1"}),
        (GenerationFilter, {}),
    ],
)
def test_no_index_is_forced_where_another_field_finds_fewer_rows(filters: type[ListFilter], query: dict[str, str]) -> None:
    assert filters(query, queryset=filters._meta.model.objects.all()).order().index == ""


def test_dead_letters_go_by_the_index_of_their_end_unless_a_source_is_asked_for() -> None:
    assert index_fields(WorkItem, BY_DEATH.index)[-2:] == ["terminal_at", "id"]
    assert select(WorkFilter(error="no")).order == BY_DEATH
    assert select(WorkFilter(source="contact:1")).order.index == ""


def test_a_forced_index_gives_the_same_rows_and_none_where_nothing_can_be_found() -> None:
    item = rows.work_row(rows.event_row(), State.DEAD)
    dead = WorkItem.objects.filter(state=State.DEAD)
    nothing = WorkItem.objects.filter(id__in=[])
    for index in ("", BY_DEATH.index):
        assert [row.id for row in keyset.by_index(dead, index)] == keyset.ids_by_index(dead, index) == [item.id]
        assert keyset.count_by_index(dead, index) == 1
        assert keyset.by_index(nothing, index) == keyset.ids_by_index(nothing, index) == []
        assert keyset.count_by_index(nothing, index) == 0
