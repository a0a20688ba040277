"""A discard and a replay of one dead item never pass each other: the item's row puts them one after the other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest
from django.db import connection, transaction

from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.discard import Discarded, discard
from tests.support.lock_waits import await_lock_wait, own_connection_id
from tests.support.rows import event_row, replay_row, work_row

pytestmark = pytest.mark.usefixtures("database")


def in_background(pool: ThreadPoolExecutor, work_id: str, ids: Queue[int]):
    def run() -> Discarded | Refused:
        try:
            ids.put(own_connection_id())
            return discard(work_id, actor="ann", reason="")
        finally:
            connection.close()

    return pool.submit(run)


@pytest.mark.parametrize("commits", [True, False])
def test_a_discard_waits_for_the_replay_and_sees_it(commits: bool) -> None:
    dead = work_row(event_row(), "dead")
    ids: Queue[int] = Queue()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            WorkItem.objects.lock_work_items([dead.id])
            replay_row(dead)
            waiting = in_background(pool, dead.work_id, ids)
            await_lock_wait(ids.get(timeout=20))
            transaction.set_rollback(not commits)
        outcome = waiting.result(timeout=20)
    dead.refresh_from_db()
    if commits:
        assert isinstance(outcome, Refused)
        assert outcome.code == "replay_running"
        assert dead.discarded_at is None
    else:
        assert outcome == Discarded(dead.work_id)
        assert dead.discarded_at is not None


def test_of_two_discards_one_wins() -> None:
    dead = work_row(event_row(), "dead")
    ids: Queue[int] = Queue()
    with ThreadPoolExecutor(2) as pool:
        both = [in_background(pool, dead.work_id, ids) for _ in range(2)]
        results = sorted(type(one.result(timeout=20)).__name__ for one in both)
    assert results == ["Discarded", "Refused"]
