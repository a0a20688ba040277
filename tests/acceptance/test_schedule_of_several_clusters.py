"""Three real clusters on one database make one row of each schedule, run it once a slot, and once after hours of standing still.

That three schedulers come at the same moment is forced in `tests/concurrency/test_one_run_a_slot.py`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pytest

from connectors.tasks import SCHEDULES
from tests.acceptance.service import Process, Service, service
from tests.acceptance.several_clusters import (
    RESIDENT,
    needs_a_lock_wait_table,
    start_clusters,
    until_the_queue_is_empty,
    until_waiting,
)
from tests.support.running import children_of
from tests.support.scale import size

pytestmark = [pytest.mark.acceptance, needs_a_lock_wait_table, pytest.mark.timeout(900)]

CLUSTERS = 3
SLOTS = size(2, 10)
"""After the gap."""
STOP_SECONDS = 30.0
LOOKS = "%`django_q_schedule`%FOR UPDATE%"
UPKEEP_ENDED = '"event": "upkeep", "state": "finished"'


@pytest.fixture
def site() -> Iterator[Service]:
    with service() as made:
        yield made


@contextmanager
def tasks_kept(clusters: Sequence[Process]) -> Iterator[None]:
    """Nobody takes a task out of the queue, so that they can be counted."""
    pushers = [max(children_of(sentinel)) for cluster in clusters for sentinel in children_of(cluster.pid)]
    assert len(pushers) == len(clusters)
    for pid in pushers:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pushers:
            os.kill(pid, signal.SIGCONT)


def queued(site: Service) -> int:
    """Tasks beside those of the running loops."""
    return int(site.fetch("SELECT COUNT(*) FROM django_q_ormq")[0][0]) - RESIDENT


def make_due(site: Service, since: str) -> None:
    """Every schedule is due since then; whoever looks meanwhile waits for its rows, and at least one cluster does."""
    with closing(site.new_connection()) as stranger:
        stranger.begin()
        stranger.cursor().execute(f"UPDATE django_q_schedule SET next_run = UTC_TIMESTAMP() - INTERVAL {since}")
        until_waiting(site, LOOKS, 1)
        stranger.commit()
    site.until(lambda: site.fetch("SELECT 1 FROM django_q_schedule WHERE next_run <= UTC_TIMESTAMP()") == [], "each has run")


def upkeep_runs(clusters: Sequence[Process]) -> int:
    return sum(cluster.log.read_text(encoding="utf-8").count(UPKEEP_ENDED) for cluster in clusters)


def rows(site: Service) -> list[tuple[str, int]]:
    return [(name, count) for name, count in site.fetch("SELECT name, COUNT(*) FROM django_q_schedule GROUP BY name ORDER BY name")]


def test_three_clusters_run_what_is_due_once(site: Service) -> None:
    first = start_clusters(site, CLUSTERS)
    assert rows(site) == sorted((name, 1) for name in SCHEDULES)
    assert upkeep_runs(first) == 1
    for cluster in first:
        cluster.ask_to_stop()
    assert [cluster.wait(STOP_SECONDS) for cluster in first] == [0] * CLUSTERS

    site.fetch("UPDATE django_q_schedule SET next_run = UTC_TIMESTAMP() + INTERVAL 1 DAY")
    site.fetch("UPDATE `_System_ConnectorUpkeep` SET FinishedAt = FinishedAt - INTERVAL 4 HOUR")
    clusters = start_clusters(site, CLUSTERS)
    assert rows(site) == sorted((name, 1) for name in SCHEDULES)
    assert upkeep_runs(clusters) == 1, "each of them asked at its start"

    with tasks_kept(clusters):
        for slot in range(1 + SLOTS):
            make_due(site, "1 MINUTE" if slot else "4 HOUR")
            assert queued(site) == len(SCHEDULES) * (slot + 1)
        site.fetch("UPDATE `_System_ConnectorUpkeep` SET FinishedAt = FinishedAt - INTERVAL 2 HOUR")
    until_the_queue_is_empty(site)
    assert upkeep_runs(clusters) == 2, "each slot asked"
    sys.stdout.write(f"{CLUSTERS} clusters, {1 + SLOTS} slots of {len(SCHEDULES)} schedules: one task each\n")
