"""Several dead items replayed together, twice and by two operators; a lane keeps to one at a time."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from projection.admission.admit import lock_admission
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.models import Event, WorkItem
from projection.refusals import Refused
from projection.replay.decision import Replayed, Result
from projection.replay.replay import replay, replay_many
from tests.support import factories
from tests.support.deliveries import change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.gates import COMMIT, Gate, stopped_at
from tests.support.rivals import Rival
from tests.support.rows import event_row, route_of, work_row
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")


def originals(work_ids: list[str]) -> list[dict[str, Any]]:
    return list(WorkItem.objects.filter(work_id__in=work_ids).order_by("id").values())


def test_of_five_the_three_that_can_be_are_replayed_once_whoever_asks_how_often() -> None:
    ingress = open_ingress()
    ingress.route()
    with recording() as seen:
        seen.raises += [DeadLetter("bad")] * 5
        ingress.admit(*[change(n) for n in range(5)])
        drain_claims()
        ingress.admit(change(3))  # an active generation
        earlier = replay(generations(4)[0].work_id, actor="somebody", reason="a second ago")
        assert isinstance(earlier, Replayed)
        selected = [generations(n)[0].work_id for n in range(5)]
        before = originals(selected)
        with transaction.atomic():
            lock_admission("default", {ingress.pack.id: ingress.pack.incarnation})
            clicks = [Rival(lambda name=name: replay_many(selected, actor=name, reason="fixed")) for name in ("ann", "ann", "bob")]
            for click in clicks:
                click.waits()
        answers = [click.result() for click in clicks]
        by_item: list[list[Result]] = [list(results) for results in zip(*answers, strict=True)]
        made = {}
        for results in by_item[:3]:
            (replayed,) = [one for one in results if isinstance(one, Replayed)]
            refused = [one for one in results if isinstance(one, Refused)]
            assert [one.code for one in refused] == ["already_replayed"] * 2
            assert all(replayed.replay_work_id in one.reason for one in refused)
            made[replayed.work_id] = replayed.replay_work_id
        active = generations(3)[1].work_id
        assert [(one.code, active in one.reason) for one in by_item[3]] == [("active_generation", True)] * 3
        assert [one.code for one in by_item[4]] == ["already_replayed"] * 3
        assert all(earlier.replay_work_id in one.reason for one in by_item[4])
        assert originals(selected) == before
        replays = WorkItem.objects.exclude(replay_of_work_id=None)
        assert dict(replays.values_list("replay_of_work_id", "work_id")) == {**made, selected[4]: earlier.replay_work_id}
        assert drain_claims() == 5


def test_a_replayed_sequence_runs_one_at_a_time_in_its_order_behind_what_is_queued() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    bad = {3, 5, 8}
    with recording() as seen:
        seen.raises += [DeadLetter("bad") if number in bad else None for number in range(1, 9)]
        ingress.admit(*changes("L", 8))
        drain_claims()
        ingress.admit(*changes("L", 2), change("M"))
        worker = ByHand()
        ninth, other = worker.claim()
        assert [ninth.claimed.item.source_lane, other.claimed.item.source_lane] == ["contact:L", "contact:M"]
        dead = [item.work_id for item in generations("L") if item.state == "dead"]
        results = replay_many([dead[2], dead[0], dead[1]], actor="me", reason="fixed")
        assert all(isinstance(one, Replayed) for one in results)
        assert states("L")[8:] == ["processing", "blocked", "blocked", "blocked", "blocked"]
        report(other)
        ingress.admit(change("M"))
        order = []
        running = ninth
        while True:
            assert WorkItem.objects.filter(source_lane="contact:L", lane_holder_key__isnull=False).count() == 1
            report(running)
            order.append([one.ordinal for one in running.inputs])
            claimed = {one.claimed.item.source_lane: one for one in worker.claim()}
            if "contact:M" in claimed:
                report(claimed["contact:M"])
            if "contact:L" not in claimed:
                break
            running = claimed["contact:L"]
    assert order == [[9], [10], [3], [5], [8]]
    assert set(states("M")) == {"processed"}
    assert states("L").count("dead") == 3


def dead_item(name: str, *, source: str, route_id: int) -> WorkItem:
    """A dead item of a pack of its own."""
    pack = factories.install(name)
    route = route_of(name, pack_id=pack.id, pack_name=name, id=route_id)
    return work_row(event_row(route, source_id=source, pack_incarnation=pack.incarnation), "dead")


def test_replays_of_two_packs_take_their_ordinals_one_after_the_other() -> None:
    """They lock no pack in common: the namespace alone keeps them apart."""
    first, second = dead_item("generic", source="1", route_id=1), dead_item("github", source="2", route_id=2)
    with stopped_at(Gate(COMMIT), lambda: replay(first.work_id, actor="ann", reason="fixed")) as one:
        other = Rival(lambda: replay(second.work_id, actor="bob", reason="fixed"))
        other.waits()
    assert [type(rival.result()) for rival in (one, other)] == [Replayed, Replayed]
    assert sorted(Event.objects.values_list("enqueue_ordinal", flat=True)) == [1, 2, 3, 4]
