"""The filter of the list of receipts."""

from __future__ import annotations

import django_filters

from connectors.models import Receipt
from ops_ui.console.lists.filters import (
    ListFilter,
    exact_filter,
    pack_choices,
)
from ops_ui.console.lists.keyset import NEWEST_FIRST, Order
from projection.states import ReceiptState


class ReceiptFilter(ListFilter):
    windowed = frozenset({"pack"})
    state = django_filters.ChoiceFilter(choices=[(s.value, s.value) for s in ReceiptState], empty_label="any")
    delivery = exact_filter("Delivery id", "idempotency_key")
    pack = django_filters.ChoiceFilter(label="Pack", choices=pack_choices, method="by_pack", empty_label="any")

    class Meta:
        model = Receipt
        fields: list[str] = []

    def order(self) -> Order:
        """By state: ix_receipt_state (state, received, id); else the primary key."""
        given = self.given()
        return Order("received_at", index="ix_receipt_state" if len(given) == 1 else "") if "state" in given else NEWEST_FIRST
