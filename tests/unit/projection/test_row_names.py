"""Each row of the engine names itself as operators know it: in the admin's titles, messages and histories."""

from __future__ import annotations

import pytest
from django.db import models

from projection.models import Event, LaneHold, ProjectionProtocol, Worker, WorkFailure, WorkItem

NAMES: dict[str, models.Model] = {
    "event 7: contact.changed contact:42": Event(id=7, event_kind="contact.changed", source_type="contact", source_id="42"),
    "csp:1": WorkItem(work_id="csp:1"),
    "csp:1 attempt 3: retry": WorkFailure(work_id="csp:1", attempt=3, outcome="retry"),
    "hold of contact:42": LaneHold(lane="contact:42"),
    "worker host-a:4711": Worker(kind="worker", host="host-a", pid=4711),
    "protocol 1": ProjectionProtocol(protocol_version=1),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_named_by_what_an_operator_knows_of_it(name: str) -> None:
    assert str(NAMES[name]) == name
