"""A lock time-out or a deadlock at every statement and COMMIT of a worker and of a replay, in turn: the work is done once all the same.

The statements are those that the work itself sends, on whichever connection (claims, plain flows, their keeper). The admission has its
own (`test_server_conflicts`), receiving as well (`integration/test_receive`).
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.db import OperationalError

from connectors.models import AuditEntry
from connectors.operations import verbs
from projection.execution.worker import drain_claims
from projection.models import WorkFailure, WorkItem
from tests.conftest import forget_what_was_read
from tests.faults.flows import registered
from tests.faults.kills import BY_THE_CLOCK
from tests.faults.points import COMMIT, Place, room, watched
from tests.faults.world import FORMS, World
from tests.support.workers_by_hand import let_leases_run_out

pytestmark = [pytest.mark.usefixtures("sound_database"), pytest.mark.timeout(900)]

CODES = [1205, 1213]
DEADLOCK = 1213
Target = tuple[str, str]
"""Room (the unit's verb, or the function that sends it) and beginning of a statement, or COMMIT."""


def target_of(place: Place) -> Target:
    text = re.sub(r"`s\d+_x\d+`", "…", place.text)  # each savepoint has a name of its own
    return room(), " ".join(text.split())[:80]


class Conflict:
    """Refuses one statement the first time that it is sent. A deadlock has rolled its transaction back before the client hears of it."""

    def __init__(self, code: int, target: Target | None) -> None:
        self._code, self._target = code, target
        self._lock = threading.Lock()
        self.sent: dict[Target, int] = {}
        """Every statement, and how often."""

    def meet(self, place: Place) -> None:
        target = target_of(place)
        with self._lock:
            self.sent[target] = self.sent.get(target, 0) + 1
            is_first = self.sent[target] == 1
        if is_first and target == self._target:
            if self._code == DEADLOCK and place.is_in_transaction:
                place.connection.connection.rollback()
            raise OperationalError(self._code, "injected")


def in_turn(code: int, prepare: Callable[[], None], work: Callable[[], object], finish: Callable[[], None]) -> set[Target]:
    """Do the work without a conflict, then with one at each statement that was sent, one after the other; where they were met."""
    targets: list[Target | None] = [None]
    met: set[Target] = set()
    for target in targets:
        forget_what_was_read()  # what a process asks once, it asks each time here
        prepare()
        conflict = Conflict(code, target)
        with watched(conflict.meet), suppress(OperationalError):
            work()
        finish()
        if target is None:
            targets += conflict.sent
        elif target in conflict.sent:
            met.add(target)
    missed = {target for target in targets if target is not None} - met
    missed -= {
        (where, text) for where, text in missed if where == "execute.tail" and text != COMMIT
    }  # a new connection, where its thread has none
    assert {where for where, _ in missed} <= BY_THE_CLOCK, missed
    return met


@pytest.mark.parametrize("code", CODES)
def test_of_a_claim_worker(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.completion.retry_policy.FLOOR_SECONDS", 0.0)
    monkeypatch.setattr(
        "projection.claiming.started.SLOW_SECONDS", math.inf
    )  # else a busy machine decides which statements are sent
    world = World(limited=True)

    def prepare() -> None:
        left = world.contact()
        world.deliver(left)
        world.route()
        world.abandon()
        world.deliver(left)
        world.route()

    def finish() -> None:
        """What a failed step of a loop left is there for its next one, at the latest when its leases have run out."""
        while world.waits():
            let_leases_run_out()
            drain_claims()

    with registered():
        met = in_turn(code, prepare, drain_claims, finish)
    world.assert_whole()
    atomic = WorkItem.objects.filter(companion_pack="atomic").values_list("work_id", flat=True)
    blamed = WorkFailure.objects.filter(work_id__in=list(atomic)).exclude(outcome="rescued")
    assert not blamed.exists(), "an atomic flow runs again in the same attempt"
    units = {"rescue", "claim", "execute", "execute.tail", "complete"}
    assert {where for where, text in met if text == COMMIT} >= units
    units.discard(
        "execute.tail"
    )  # its statements are the flow's and the completion's, and a new connection where its thread has none
    assert {where for where, text in met if text != COMMIT} >= units | {"heartbeat"}


@pytest.mark.parametrize("code", CODES)
def test_of_a_replay(code: int) -> None:
    world = World()
    dead: list[str] = []

    def prepare() -> None:
        contact = world.contact()
        world.bury(contact)
        dead[:] = WorkItem.objects.filter(source_lane=f"contact:{contact}").values_list("work_id", flat=True)

    def replay() -> None:
        verbs.replay(dead, actor="ann", reason="open again")

    def finish() -> None:
        replay()
        drain_claims()
        assert WorkItem.objects.filter(replay_of_work_id__in=dead, state="processed").count() == len(FORMS)
        assert AuditEntry.objects.filter(action="work.replay", target__in=dead).count() == len(FORMS)

    with registered():
        met = in_turn(code, prepare, replay, finish)
    world.assert_whole()
    assert ("replay", COMMIT) in met
    assert len([text for where, text in met if where == "replay"]) > 10
