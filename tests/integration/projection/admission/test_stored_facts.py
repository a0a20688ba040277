"""Facts of stored events: by their own snapshots, and none where there is no proof."""

from __future__ import annotations

from typing import Any

import pytest

from projection.admission.stored_events import stored_events, stored_facts
from projection.database.clock import now
from projection.models import Event
from tests.support.rows import CONTACTS, event_row

pytestmark = pytest.mark.usefixtures("database")


def test_no_ids_cost_no_statement(django_assert_num_queries: Any) -> None:
    moment = now()
    with django_assert_num_queries(0):
        assert (stored_facts([], moment), stored_events([])) == ([], [])


def test_an_event_without_snapshot_is_an_event_and_no_fact() -> None:
    routed, unrouted = event_row(CONTACTS), event_row(None)
    ids = [unrouted.id, routed.id]
    assert [fact.place.event_id for fact in stored_facts(ids, now())] == [routed.id]
    assert [(id, event.route) for id, event in stored_events(ids)] == [(routed.id, CONTACTS), (unrouted.id, None)]


def test_a_fact_is_due_at_its_deadline_and_never_in_the_past() -> None:
    event = event_row(CONTACTS)
    moment = now()
    for deadline, due in (
        (None, moment),
        (moment.replace(year=2020), moment),
        (moment.replace(year=2099), moment.replace(year=2099)),
    ):
        Event.objects.update(next_attempt_at=deadline)
        assert [fact.run_after for fact in stored_facts([event.id], moment)] == [due]
