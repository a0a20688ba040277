"""Operators press everything at once: each dead item is replayed once, or discarded, and every answer is a sentence."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from connectors.models import Pack
from projection.completion import lanes
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.cancel import cancel, retry_now
from projection.replay.decision import Deferred, Replayed
from projection.replay.discard import discard
from projection.replay.replay import replay, replay_many
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("sound_database")

THREADS = 6


def dead_letters(count: int, *, same_source: bool = False) -> tuple[Ingress, list[str]]:
    ingress = open_ingress()
    ingress.route(mode="per_event" if same_source else "projection")
    ingress.admit(*[change(0 if same_source else n) for n in range(count)])
    with recording() as seen:
        seen.raises += [DeadLetter("no")] * count
        while drain_claims():
            pass
    found = list(WorkItem.objects.filter(state="dead").order_by("id").values_list("work_id", flat=True))
    assert len(found) == count
    return ingress, found


def at_once(*acts: Callable[[], object]) -> list[object]:
    """What each act returned, all started together on connections of their own."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


@contextmanager
def held_namespace(seconds: float) -> Iterator[None]:
    """Another connection has the namespace's row for a while."""
    has, over = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            WorkItem.objects.lock_namespace("default")
            has.set()
            over.wait(seconds)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    has.wait()
    yield
    holder.join()


def test_hundreds_with_repeated_and_unknown_ids_get_one_answer_each() -> None:
    _, dead = dead_letters(100)
    asked = [*dead, *dead, *[f"csp:{n:064}" for n in range(98)], "", "é\x00", "' OR 1=1 --", "x" * 5000]
    answers = replay_many(asked, actor="ann", reason="again")
    assert len(answers) == len(asked)
    assert Counter(type(one).__name__ for one in answers) == {"Replayed": 200, "Refused": 102}
    assert answers[:100] == answers[100:200]
    assert WorkItem.objects.exclude(replay_of_work_id=None).count() == 100


def test_bulks_of_several_operators_replay_each_item_once() -> None:
    _, dead = dead_letters(30)
    with held_namespace(0.5):
        results = at_once(*[lambda: replay_many(dead, actor="ann", reason="again")] * THREADS)
    made = [one for answers in results for one in answers if isinstance(one, Replayed)]
    assert sorted(one.work_id for one in made) == sorted(dead)
    others = [one for answers in results for one in answers if not isinstance(one, Replayed)]
    assert {one.code for one in others} == {"already_replayed"}


@pytest.mark.parametrize("same_source", [False, True], ids=["projections", "one lane"])
def test_every_verb_on_the_same_items_at_once(same_source: bool) -> None:
    ingress, dead = dead_letters(8, same_source=same_source)
    lane = str(WorkItem.objects.values_list("lane_key", flat=True)[0])

    def each(act: Callable[[str], object]) -> Callable[[], object]:
        return lambda: [act(work_id) for work_id in dead]

    results = at_once(
        each(lambda one: replay(one, actor="ann", reason="r")),
        lambda: replay_many(dead, actor="bob", reason="r"),
        each(lambda one: discard(one, actor="cy", reason="r")),
        each(lambda one: cancel(one, actor="di", reason="r")),
        each(lambda one: retry_now(one, actor="ed")),
        lambda: [lanes.hold("default", lane, "x", actor="fay", reason="r"), lanes.release(lane, actor="fay")],
        lambda: [ingress.admit(change(n % 3)) for n in range(8)],
    )
    answers = [one for several in results for one in several if isinstance(one, Replayed | Refused | Deferred)]
    assert max(Counter(one.work_id for one in answers if isinstance(one, Replayed)).values(), default=0) <= 1
    with recording():
        while drain_claims():
            pass
    assert not WorkItem.objects.filter(state__in=["pending", "blocked", "processing", "retry"]).exists()


def test_a_dead_item_of_a_removed_pack_is_replayed_by_its_own_snapshot() -> None:
    _, dead = dead_letters(2)
    Pack.objects.update(state="removed")
    assert all(isinstance(one, Replayed) for one in replay_many(dead, actor="ann", reason="r"))
    with recording() as seen:
        drain_claims()
    assert len(seen.runs) == 2
