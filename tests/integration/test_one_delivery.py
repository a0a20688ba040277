"""One delivery on its whole way: a signed request over HTTP, its receipt, event and work, the record that it makes, a clean audit.

`script/test --quick` runs it beside the unit tests.
"""

from __future__ import annotations

import json

import pytest

from connectors.flows.record_fold import properties_of
from connectors.models import Receipt, Record
from projection.admission import activation
from projection.models import Event, WorkItem
from tests.support import commands, factories
from tests.support.ingress import open_endpoint

SETTINGS = {"items": "events", "delivery_id": "id", "source_type": "'order'", "source_id": "order"}


@pytest.mark.usefixtures("database")
def test_a_signed_delivery_becomes_a_record_once() -> None:
    activation.activate("test")
    ingress = open_endpoint(settings=SETTINGS)
    factories.route(ingress.pack, "orders", mode="projection", flow="record_table", kind="order.changed", on=("*",))
    body = json.dumps({"events": [{"id": "e1", "order": "7", "total": "12.50"}]}).encode()

    assert ingress.post(body, {}).status_code == 401  # without its signature
    assert [ingress.post(body).status_code for _ in range(2)] == [202, 202]

    for command in ("route_receipts", "run_worker"):
        assert commands.run(command, "--drain")[0] == 0
    assert sorted(Receipt.objects.values_list("state", "event_count")) == [("routed", 0), ("routed", 1)]
    assert Event.objects.count() == 1
    assert list(WorkItem.objects.values_list("state", "attempts")) == [("processed", 1)]
    record = Record.objects.get()
    assert (record.source_type, record.source_id, record.event_count) == ("order", "7", 1)
    assert properties_of(record.properties)["total"].text == '"12.50"'
    code, report = commands.run("audit")
    assert (code, report["ok"], report["violations"]) == (0, True, [])
