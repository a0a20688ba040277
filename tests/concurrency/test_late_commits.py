"""A receipt whose smaller id commits later is routed then; gaps of ids stall nothing."""

from __future__ import annotations

import pytest
from django.db import transaction

from connectors.models import Receipt
from connectors.routing.router import drain_receipts
from projection.execution.worker import drain_claims
from projection.models import Event
from tests.support import factories
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.gates import COMMIT, Gate, stopped_at

pytestmark = pytest.mark.usefixtures("sound_database")


def store_in_transaction(ingress: Ingress, event: dict[str, object], *, rolled_back: bool = False) -> None:
    with transaction.atomic():
        factories.receipt(ingress.pack, {"events": [event]})
        transaction.set_rollback(rolled_back)


def test_the_order_is_the_order_of_admission_and_nothing_is_skipped() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    late, early = change(7), change(7)
    with stopped_at(Gate(COMMIT), lambda: store_in_transaction(ingress, late)) as slow:
        second = ingress.send(early)
        assert drain_receipts().events == 1
        assert drain_receipts().seen == 0
    slow.result()
    store_in_transaction(ingress, change(7), rolled_back=True)
    last = change(7)
    ingress.send(last)
    first_id = Receipt.objects.order_by("id")[0].id
    assert first_id < int(second.receipt_id or 0)
    assert drain_receipts().events == 2
    assert list(Event.objects.order_by("enqueue_ordinal").values_list("delivery_id", flat=True)) == [
        early["id"], late["id"], last["id"],
    ]  # fmt: skip
    with recording() as seen:
        drain_claims()
    assert seen.inputs == [1, 2, 3]
