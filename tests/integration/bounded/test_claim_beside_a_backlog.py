"""A claim costs what it takes, not what waits: beside 20,000 due and 20,000 settling items, with statistics from before they came."""

from __future__ import annotations

import pytest

from projection.claiming import claim
from projection.limits.queue_classes import WEIGHTS, earliest_of_each
from projection.models import WorkItem
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.scale import size
from tests.support.server_work import server_work
from tests.support.workers_by_hand import ByHand

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale]

BACKLOG = size(20_000, 200_000)
TAKEN = 20
ROWS = 60 + 20 * TAKEN
"""A step for each class and state; for each item its event, its holder, what is ahead in its lane, what is paused, and what it is."""


def backlog(ingress: Ingress, *, run_after: str) -> None:
    """Items of lanes of their own, as many of each of two classes."""
    for place, queue_class in enumerate(("bulk", "nightly")):
        ingress.route(queue_class, mode="per_event", queue_class=queue_class, on=(queue_class,))
        ingress.admit(change(place, kind=queue_class))
        item = WorkItem.objects.get(queue_class=queue_class)
        name = f"{queue_class} {run_after}"
        copy_rows(item, BACKLOG // 2, WorkId=hashed(name), LaneKey=hashed(name), RunAfter=run_after)
        item.delete()


def test_taking_due_items_reads_in_proportion_to_what_is_taken() -> None:
    ingress = open_ingress()
    backlog(ingress, run_after="UTC_TIMESTAMP(6) - INTERVAL n MICROSECOND")
    with recording():
        ByHand().claim(1)  # what a process asks once
        with server_work() as work:
            assert len(ByHand().claim(TAKEN)) == TAKEN
    assert work.rows_read <= ROWS


def test_finding_that_nothing_is_due_reads_a_row_for_each_class() -> None:
    ingress = open_ingress()
    backlog(ingress, run_after="UTC_TIMESTAMP(6) + INTERVAL 1 HOUR + INTERVAL n SECOND")
    with recording():
        first = claim.claim(TAKEN, owner="worker", lease_seconds=60)
        with server_work() as work:
            again = claim.claim(TAKEN, owner="worker", lease_seconds=60)
    assert (first.ids, again.ids) == ([], [])
    assert again.next_due is not None
    assert 3590 < again.next_due <= 3600
    assert work.rows_read <= 2 * (2 * len(claim._known_classes) + 1), "each class that this process knows, and between them"


def test_what_is_not_due_is_not_even_a_candidate() -> None:
    ingress = open_ingress()
    backlog(ingress, run_after="UTC_TIMESTAMP(6) + INTERVAL 1 HOUR + INTERVAL n SECOND")
    with recording():
        claim.claim(TAKEN, owner="worker", lease_seconds=60)  # what a process asks once
        for queue_class in ("bulk", "nightly"):
            ingress.admit(change(queue_class, kind=queue_class))
        with server_work() as work:
            assert len(ByHand().claim(TAKEN)) == 2
    assert work.rows_read <= ROWS - 20 * (TAKEN - 2)


def test_each_new_class_is_noticed() -> None:
    ingress = open_ingress()
    names = ["a", "aa", "default-late", "nightly", "zz", "interactive"]
    for place, queue_class in enumerate(names):
        ingress.route(queue_class, mode="per_event", queue_class=queue_class, on=(queue_class,))
        ingress.admit(change(place, kind=queue_class))
    claim._known_classes.intersection_update(WEIGHTS)
    with recording():
        taken = [one.claimed.route.queue_class for _ in names for one in ByHand().claim(10)]
    assert sorted(taken) == sorted(names)


def test_every_class_is_asked_for_exactly_once_in_each_state() -> None:
    text, values = earliest_of_each(["b", "d", "b"])
    conditions = [part.split("AND ", 1)[1].split(" ORDER")[0] for part in text.split(" UNION ALL ")]
    one_state = ["QueueClass < %s", "QueueClass = %s", "QueueClass = %s", "QueueClass > %s AND QueueClass < %s", "QueueClass > %s"]
    assert conditions == one_state * 2
    assert values == [
        "pending", "b", "pending", "b", "pending", "d", "pending", "b", "d", "pending", "d",
        "retry", "b", "retry", "b", "retry", "d", "retry", "b", "d", "retry", "d",
    ]  # fmt: skip
