"""A worker that comes back while its item is being taken from it waits, and then has nothing to say: no row of it is written."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from projection.claiming.rescue import _read_leases, _rescue, rescue
from projection.execution.worker import drain_claims
from projection.models import WorkFailure, WorkItem
from projection.states import State
from tests.support.deliveries import change, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.rivals import Rival, completion_open
from tests.support.workers_by_hand import ByHand, let_leases_run_out, report

pytestmark = pytest.mark.usefixtures("sound_database")

ENDS: dict[str, dict[str, Any]] = {
    "success": {"state": State.PROCESSED},
    "dead letter": {"state": State.DEAD, "outcome": "dead", "error": "bad"},
    "retry": {"state": State.RETRY, "outcome": "retry", "error": "no", "delay_ms": 1000},
}


@pytest.mark.parametrize("end", ENDS)
def test_an_end_that_waits_for_the_rescue_of_its_own_lease_is_lost(end: str) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    with recording() as seen:
        zombie = ByHand().claim_one()
        ingress.admit(change(7))
        let_leases_run_out()
        with transaction.atomic():
            assert len(_rescue([zombie.claimed.item.id], _read_leases()).written) == 1
            rival = Rival(lambda: report(zombie, **ENDS[end]))
            rival.waits()
        ended = rival.result()
        assert (list(ended.written), list(ended.lost), ended.activated) == ([], [zombie.claimed.item.work_id], 0)
        assert [row.outcome for row in WorkFailure.objects.all()] == ["rescued"]
        assert states(7) == ["retry", "blocked"], "its successor waits on"
        assert [item.projection_active_key is None for item in generations(7)] == [False, True]
        while drain_claims():
            continue
        assert seen.inputs == [1, 2]
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


def test_a_worker_that_stands_still_in_the_middle_of_an_end_keeps_no_other_lane_from_its_rescue(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its transaction holds its own item for as long as it stands still; the others of its batch have run out as well."""
    ingress = open_ingress()
    ingress.route()
    ingress.admit(*[change(contact) for contact in range(5)])
    with recording() as seen:
        frozen, *others = ByHand().claim()
        let_leases_run_out()
        with completion_open([frozen]):
            rival = Rival(rescue)
            assert rival.ends_at_once() == len(others)
        said = capsys.readouterr().err
        assert frozen.claimed.item.work_id in said
        assert '"measure"' not in said, "who measures understands the line"
        assert states(frozen.claimed.item.source_lane.partition(":")[2]) == ["processed"], "it was its to end"
        assert rescue() == 0
        drain_claims()
        assert sorted(seen.sources) == ["1", "2", "3", "4"]
