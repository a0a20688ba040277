"""What operators run is killed at every commit point: it is done once all the same, whoever goes on with it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from connectors.models import AuditEntry, Receipt
from connectors.operations.ingress_audit import audit_everything
from connectors.operations.work_filters import WorkFilter
from connectors.retention.prune import retain
from projection.bulk.job_rows import JobKind, JobRow, JobState
from projection.database import clock
from projection.models import Event, WorkItem
from tests.faults.children import Command, Nursery
from tests.faults.kills import EveryPoint, rooms
from tests.faults.world import FORMS, WORK, World
from tests.integration.connectors.retention.test_erasing import tables_that_say
from tests.support.bulk_rows import make_old
from tests.support.jobs_by_hand import assert_exact, codes, now, start

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]


def test_a_replay(nursery: Nursery) -> None:
    world = World(nursery)
    replay = ("dlq", "replay", "--all", "--reason", "the receiver is open again")

    def dead() -> Sequence[Command]:
        world.bury(world.contact(), world.contact())
        return [replay]

    kills = EveryPoint(nursery, dead)
    for number, _ in enumerate(kills, start=1):
        nursery.succeed(replay)
        world.go_on()
        world.assert_whole()
        replays = dict(WorkItem.objects.exclude(replay_of_work_id=None).values_list("replay_of_work_id", "state"))
        assert replays == dict.fromkeys(WorkItem.objects.filter(state="dead").values_list("work_id", flat=True), "processed")
        assert len(replays) == 2 * len(FORMS) * number
        told = AuditEntry.objects.filter(action="work.replay").values_list("count", flat=True)
        assert sum(told) == len(replays), "with its entry in the trail, or not at all"
    assert rooms(kills.points) == {"job", "job_step"}
    assert kills.count >= 2 * 3, "while members were found, when it was confirmed, and while items were acted on"


@pytest.mark.parametrize("kind", list(JobKind))
def test_a_bulk_job(nursery: Nursery, kind: JobKind) -> None:
    """Steps of two items, pages of three; of one contact two are dead, so that the second waits for the first one's replay."""
    at_once = {"projection.bulk.steps.LOOK_AGAIN_SECONDS": 0.0}
    sizes = {"projection.bulk.steps.ITEMS_A_STEP": 2, "projection.bulk.membership.PAGE": 3} | at_once
    world = World(nursery, forms=("atomic",))
    job: list[JobRow] = []

    def started() -> Sequence[Command]:
        since = clock.now()
        one, two, three = world.contact(), world.contact(), world.contact()
        world.bury(one, two, three)
        world.bury(one)
        job[:] = [start(kind, WorkFilter(since=since))]
        return [["jobs", "run", str(job[0].id)]]

    kills = EveryPoint(nursery, started, {"constants": sizes})
    for _ in kills:
        run = ["jobs", "run", str(job[0].id)]
        nursery.succeed(run, WORK, run, WORK, ["audit"], constants=at_once)
        world.assert_whole()
        assert (now(job[0]).state, now(job[0]).total, codes(job[0])) == (JobState.FINISHED, 4, {"done": 4})
        assert_exact(job[0])
        entries = AuditEntry.objects.filter(target=f"job {job[0].id}", action=f"work.{kind}")
        assert sum(entry.count for entry in entries) == 4
    assert rooms(kills.points) == {"job_step"}
    assert kills.count >= 2 * 4, "while members were found, while items were acted on, and at its end"


def test_a_purge(nursery: Nursery) -> None:
    sizes = {
        "projection.retention.prune.KEYS_A_UNIT": 1,
        "projection.retention.prune.ITEMS_A_UNIT": 2,
        "projection.retention.oldest_ends.GENERATIONS_A_UNIT": 1,
        "connectors.retention.receipts.RECEIPTS_A_UNIT": 1,
    }
    world = World(nursery, forms=("atomic", "plain"))
    prune = ("prune", "--yes")
    before: dict[str, int] = {}
    expected: dict[str, int] = {}

    def old() -> Sequence[Command]:
        contact = world.contact()
        for _ in range(3):
            world.finish(contact)
        make_old()
        before.update(rows())
        expected.update(retain(dry_run=True).counts())
        return [prune]

    kills = EveryPoint(nursery, old, {"constants": sizes})
    for _ in kills:
        left = retain(dry_run=True).counts()
        assert audit_everything().ok
        rest, _ = nursery.succeed(prune, ["audit"]).answers
        assert {name: rest[name] for name in left} == left, "what the killed one had not removed, and nothing else"
        assert {name: before[name] - count for name, count in rows().items()} == {name: expected[name] for name in before}
        assert not any(retain(dry_run=True).counts().values())
    assert rooms(kills.points) == {"prune"}
    assert kills.count >= 2 * 6, "in each step, and between them"


def rows() -> dict[str, int]:
    """By the names under which retention counts them."""
    return {"events": Event.objects.count(), "work_items": WorkItem.objects.count(), "receipts": Receipt.objects.count()}


def test_an_erasure(nursery: Nursery) -> None:
    """Her id is in every payload of hers."""
    sizes = {"connectors.retention.erased_sources.EVENTS_A_UNIT": 1}
    world = World(nursery, forms=("atomic", "plain"))
    erase: list[Command] = []

    def hers() -> Sequence[Command]:
        her = f"{world.contact()}@example.com"
        world.finish(her)
        world.finish(her, world.contact())
        erase[:] = [["erase", "--source", f"contact:{her}", "--reason", "she asked", "--yes"]]
        return erase

    kills = EveryPoint(nursery, hers, {"constants": sizes})
    for _ in kills:
        assert audit_everything().ok
        nursery.succeed(*erase, ["audit"])
        assert tables_that_say("@example.com") == []
    assert rooms(kills.points) == {"erase", "audit_log.record"}
