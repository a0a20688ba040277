"""Identity: 265 typed sources in one batch fare as each of them alone, also where an older schema compares ids loosely."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from connectors.routing.router import route_batch
from projection.models import Event, WorkItem
from tests.support.altered_columns import altered
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.workers_by_hand import at

pytestmark = pytest.mark.usefixtures("database")

COUNT = 265
LOOSE = {"case-insensitive": "utf8mb4_general_ci", "PAD SPACE": "utf8mb4_bin"}
"""On both servers these two pad; the first also folds case."""
START = datetime(2026, 5, 5, 5, 5, 0, 250123, tzinfo=UTC)
LATER = timedelta(seconds=1)


@pytest.fixture(params=["as it is", *LOOSE])
def collation(request: pytest.FixtureRequest, database: None) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param != "as it is":
            text = f"CHARACTER SET utf8mb4 COLLATE {LOOSE[request.param]}"
            ids = {"SourceId": f"VARCHAR(512) {text} NOT NULL", "SourceType": f"VARCHAR(190) {text} NOT NULL"}
            keys = {"SourceKey": f"VARCHAR(64) {text} NOT NULL", "SourceLane": f"VARCHAR(700) {text} NOT NULL"}
            stack.enter_context(altered("_System_ConnectorEvent", **ids, **keys))
            stack.enter_context(altered("_System_ConnectorWorkItem", SourceLane=keys["SourceLane"]))
        yield request.param


def sources() -> list[dict[str, Any]]:
    """Ids that only a strict comparison tells apart, each in two types that do so too, over three chunks of 128 keys.

    Of two that are alike one has an even place and the other an odd one: they do not come first at the same time.
    """
    look_alikes = ("CASE-{}", "case-{}", "case-{} ", "Case-{}", "cäse-{}")
    typed = [
        ("Contact" if number % 2 else "contact", template.format(number // 2))
        for number in range(COUNT // len(look_alikes))
        for template in look_alikes
    ]
    return [change(one, type=kind, lane=f"{LANES[kind]}:{one}") for kind, one in typed]


LANES = {"contact": "first", "Contact": "second"}
"""Of the types; folded lanes of both would be one."""


def outcome(namespace: str) -> dict[tuple[str, str, str, str], tuple[int, int, set[datetime | None], set[datetime]]]:
    """Per (type, id, lane, companion): events, generations, deadlines and times to run."""
    found: dict[Any, Any] = {}
    routes = {item.projection_key: item.companion_pack for item in WorkItem.objects.filter(namespace=namespace)}
    for event in Event.objects.filter(namespace=namespace):
        key = (event.source_type, event.source_id, event.source_lane, routes[event.projection_key])
        count, _, deadlines, _ = found.get(key, (0, 0, set(), set()))
        items = WorkItem.objects.filter(projection_key=event.projection_key)
        found[key] = (count + 1, items.count(), deadlines | {event.next_attempt_at}, {item.run_after for item in items})
    return found


def admit(namespace: str, case: str, *, together: bool) -> None:
    ingress: Ingress = open_ingress(in_namespace=namespace)
    ingress.route("crm", flow="crm.contact", settle=5.0, source_id_case=case)
    ingress.route("erp", flow="erp.contact", settle=60.0, source_id_case=case)
    items = sources()
    for moment, wave in ((START, items[::2]), (START + LATER, [{**one, "id": f"{one['id']} again"} for one in items])):
        with at(moment):
            for batch in [wave] if together else [[one] for one in wave]:
                ingress.send(*batch)
            while route_batch(namespace, COUNT if together else 1).seen:
                pass


@pytest.mark.parametrize("case", ["exact", "fold"])
def test_a_batch_gives_each_source_what_it_gets_alone(collation: str, case: str) -> None:
    admit("together", case, together=True)
    admit("alone", case, together=False)
    together, alone = outcome("together"), outcome("alone")
    assert together == alone
    assert WorkItem.objects.filter(namespace="together").count() == len(together), "a generation for each"
    if case == "fold":
        assert len(together) < 2 * COUNT
        return
    assert len(together) == 2 * COUNT, "two companions each"
    early = {(one["type"], one["contact"]) for one in sources()[::2]}
    settled = {"crm": START + timedelta(seconds=5), "erp": START + timedelta(seconds=60)}
    for (kind, source_id, _, companion), (events, generations, deadlines, due) in together.items():
        first = (kind, source_id) in early
        assert (events, generations) == (2 if first else 1, 1)
        assert deadlines == due == {settled[companion] + (timedelta() if first else LATER)}, "each has a burst of its own"
