"""Ties in provider time: the order of admission decides, and provider time removes no input."""

from __future__ import annotations

from typing import Any

import pytest

from projection.execution.worker import drain_claims
from projection.models import Event, WorkItem
from tests.support import factories
from tests.support.deliveries import SETTINGS, Ingress, change, generations, open_ingress
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("sound_database")

T10, T9 = "2026-01-01T00:00:10Z", "2026-01-01T00:00:09Z"
HISTORY: list[dict[str, Any]] = [
    {"status": "open", "at": T10},
    {"status": "paid", "at": T10},
    {"status": "updated", "at": T10},
    {"status": "open", "at": T9},
    {"status": "closed"},
]


def timed_ingress() -> Ingress:
    ingress = open_ingress()
    ingress.pack.delete()
    pack = factories.install("generic", settings={**SETTINGS, "time": "at"})
    factories.models.Endpoint.objects.update(pack_id=pack.id)
    timed = Ingress(pack, ingress.slug)
    timed.route()
    return timed


@pytest.mark.parametrize("batches", [[3, 1, 1], [5], [1, 1, 1, 1, 1]], ids=["as the case says", "one batch", "one by one"])
def test_the_last_admitted_event_is_selected_and_all_are_inputs(batches: list[int]) -> None:
    ingress = timed_ingress()
    events = [change("invoice", **members) for members in HISTORY]
    for size in batches:
        ingress.admit(*[events.pop(0) for _ in range(size)])
    (item,) = generations("invoice")
    assert item.lane_ordinal == 5
    assert Event.objects.get(id=item.event_id).provider_timestamp is None
    with recording() as seen:
        drain_claims()
    assert seen.inputs == [1, 2, 3, 4, 5]
    times = list(Event.objects.order_by("enqueue_ordinal").values_list("provider_timestamp", flat=True))
    assert [time and time.second for time in times] == [10, 10, 10, 9, None]
    assert WorkItem.objects.count() == 1
