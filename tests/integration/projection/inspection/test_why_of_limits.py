"""Why is it not running: as many of its limit run as may."""

from __future__ import annotations

import pytest

from projection.facts import RateLimit
from projection.inspection.why import why
from projection.models import WorkItem
from tests.support import console_world
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")


def test_why_says_that_all_places_are_taken() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event", limit=RateLimit("api", concurrency=3))
    ingress.admit(*[change(n) for n in range(4)])
    with recording():
        attempts = ByHand().claim()
        console_world.worker("worker")
        item = WorkItem.objects.get(state="pending")
        reason = why(item)
        assert (reason.code, reason.until) == ("limited", None)
        assert reason.sentence == "Concurrency limit api reached: 3 of 3 running."
        report(attempts[0])
        assert why(item).code == "due"
