"""What the factories write is what the product reads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from connectors import models, secrets
from projection.facts import RouteFacts
from tests.support import factories

pytestmark = pytest.mark.usefixtures("database")


def test_a_route_row_carries_the_snapshot_of_its_own_id() -> None:
    facts = factories.route(factories.install("generic"), "orders", mode="projection", settle=5.0, flow="record_table")
    row = models.Route.objects.get(id=facts.id)
    assert RouteFacts.from_snapshot(row.snapshot) == facts
    assert row.is_current
    assert facts.is_projection


def test_an_endpoint_keeps_its_secrets_encrypted() -> None:
    row = factories.endpoint(factories.install("generic"), secret_values=("one", "two"))
    stored = models.Endpoint.objects.get(id=row.id).secrets
    assert "one" not in stored
    assert secrets.live(stored, datetime.now(UTC)) == ["one", "two"]
