"""One admission of 4,400 events takes at most 60 texts, which grow with chunks alone (docs/protocol.md#bounded-admission)."""

from __future__ import annotations

import pytest

from connectors.bench.workbench import texts_sent
from connectors.registry import installed_packs
from connectors.routing.router import route_batch
from projection.models import Event, WorkItem
from tests.support.deliveries import Ingress, change, open_ingress

pytestmark = pytest.mark.usefixtures("sound_database")

CHUNK = 128
"""Projections that one statement is about."""


@pytest.fixture
def ingress() -> Ingress:
    found = open_ingress()
    found.route(settle=3600.0, on=("changed",))
    found.route("action", mode="per_event", kind="deal.action", on=("action",), queue_class="interactive")
    found.admit(change("first"))  # what a process asks once
    return found


def admit(ingress: Ingress, *, sources: range, events: int, actions: int = 0) -> int:
    """Texts of one admission of `events` changes of each source and some actions."""
    items = [change(source) for _ in range(events) for source in sources]
    items += [change(f"action-{number}", kind="action") for number in range(actions)]
    receipts = [items[at : at + 100] for at in range(0, len(items), 100)]
    for one in receipts:
        ingress.send(*one)
    installed_packs.of.forget()  # remembered for some seconds: always counted
    with texts_sent() as texts:
        report = route_batch("default", len(receipts))
    assert report.events == len(items)
    return texts.count


def test_4400_events_are_admitted_with_at_most_60_texts(ingress: Ingress) -> None:
    assert admit(ingress, sources=range(400), events=10, actions=400) <= 60
    assert (Event.objects.count(), WorkItem.objects.count()) == (4_401, 801)
    active = WorkItem.objects.filter(projection_active_key__isnull=False)
    assert active.count() == active.values("projection_active_key").distinct().count() == 401
    assert admit(ingress, sources=range(400), events=1) <= 60, "and again, advancing 400 generations"


def test_they_grow_with_chunks_and_not_with_sources_or_events(ingress: Ingress) -> None:
    few = admit(ingress, sources=range(0, 8), events=1)
    assert admit(ingress, sources=range(1000, 1000 + CHUNK), events=1) == few
    assert admit(ingress, sources=range(2000, 2000 + CHUNK), events=3) == few
    two_chunks = admit(ingress, sources=range(3000, 3001 + CHUNK), events=1)
    assert few < two_chunks <= few + 4
    assert admit(ingress, sources=range(4000, 4000 + 2 * CHUNK), events=1) == two_chunks
