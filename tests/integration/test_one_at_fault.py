"""One row that a fault has broken keeps nobody else from his turn: it fails alone, and is named."""

from __future__ import annotations

import pytest

from projection.audit import audit
from projection.models import Event
from projection.worker import drain_claims
from tests.deliveries import change, generations, open_ingress, states
from tests.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("database")


def test_items_whose_event_is_not_retained_are_dead_letters_and_make_room() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(lost) for lost in range(4)])
    ingress.admit(change(0), change(9))
    Event.objects.filter(source_id__in=["1", "2", "3"]).delete()
    Event.objects.filter(source_id="0").order_by("id")[0].delete()
    with recording() as seen:
        assert drain_claims(batch=2) == 6
    assert sorted(seen.sources) == ["0", "9"], "what is behind one in its lane, and other lanes"
    assert states(0) == ["dead", "processed"]
    lost = generations(1)[0]
    assert (lost.state, lost.last_error) == ("dead", f"event {lost.event_id}, which it selects, is not retained; run `audit`")
    assert {found.invariant for found in audit().violations} == {"selected_event"}
