"""Whatever the engine does in whatever order, the audit holds after every step: random histories through the product's own modules."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from connectors.operations.ingress_audit import audit_everything
from projection import flows
from projection.completion import lanes
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.flows import DeadLetter, Generation, RetryLater, Skip
from projection.models import Event, LaneHold, WorkItem
from projection.replay.cancel import cancel, retry_now
from projection.replay.discard import discard
from projection.replay.replay import replay
from projection.states import NONTERMINAL
from tests.support.commands import run
from tests.support.deliveries import Ingress, change, open_ingress

pytestmark = pytest.mark.usefixtures("database")

CONTACTS = 3


class History:
    """One random history; `steps` tells what was done, for a failure's message."""

    def __init__(self, seed: int, ingress: Ingress) -> None:
        self.random = random.Random(seed)
        self.ingress = ingress
        self.steps: list[str] = []
        self.sent: list[dict[str, object]] = []
        self.calm = False

    def step(self) -> None:
        moves: list[Callable[[], None]] = [self.admit, self.admit, self.drain, self.drain, self.retry, self.replay, self.cancel]
        move = self.random.choice([*moves, self.hold, self.release, self.repeat, self.discard])
        self.steps.append(move.__name__)
        move()

    def admit(self) -> None:
        events = [
            change(
                self.random.randint(1, CONTACTS),
                kind=self.random.choice(["changed", "changed", "viewed", "unheard"]),
                **({"lane": None} if self.random.random() < 0.1 else {}),
            )
            for _ in range(self.random.randint(1, 4))
        ]
        self.sent += events
        self.ingress.admit(*events)

    def repeat(self) -> None:
        if self.sent:
            self.ingress.admit(self.random.choice(self.sent), change(self.random.randint(1, CONTACTS)))

    def drain(self) -> None:
        drain_claims(batch=self.random.choice([1, 2, 10]))

    def execute(self, _generation: Generation) -> None:
        """The flow: news arrive while it runs, and it ends in every way."""
        chance = self.random.random()
        if self.calm:
            return
        if chance < 0.3:
            self.steps.append("admit while processing")
            self.admit()
        if self.random.random() < 0.6:
            return
        raise self.random.choice([DeadLetter("no"), Skip("gone"), RetryLater(3600.0), ValueError("broken")])

    def retry(self) -> None:
        for work_id in self._some("retry"):
            retry_now(work_id, actor="test")

    def replay(self) -> None:
        for work_id in self._some("dead"):
            replay(work_id, actor="test", reason="")

    def discard(self) -> None:
        for work_id in self._some("dead")[:1]:
            discard(work_id, actor="test", reason="")

    def cancel(self) -> None:
        for work_id in self._some("pending", "blocked", "retry")[:1]:
            cancel(work_id, actor="test", reason="")

    def hold(self) -> None:
        items = list(WorkItem.objects.filter(lane_key__isnull=False).order_by("id"))
        if items:
            item = self.random.choice(items)
            lanes.hold("default", str(item.lane_key), item.source_lane, actor="test", reason="")

    def release(self) -> None:
        for key in LaneHold.objects.values_list("lane_key", flat=True):
            lanes.release(key, actor="test")

    def _some(self, *states: str) -> list[str]:
        work_ids = list(WorkItem.objects.filter(state__in=states).order_by("id").values_list("work_id", flat=True))
        return self.random.sample(work_ids, min(2, len(work_ids)))

    def settle(self) -> None:
        """Let everything end well."""
        self.calm = True
        self.release()
        for _ in range(20):
            for work_id in WorkItem.objects.filter(state="retry").values_list("work_id", flat=True):
                retry_now(work_id, actor="test")
            if not drain_claims() and not WorkItem.objects.filter(state__in=sorted(NONTERMINAL)).exists():
                return
        raise AssertionError(f"these never end: {list(WorkItem.objects.filter(state__in=sorted(NONTERMINAL)).values())}")


@contextmanager
def history(seed: int) -> Iterator[History]:
    ingress = open_ingress()
    policy = RetryPolicy(base=3600, attempts=3)
    ingress.route("contact", on=("changed",), retry=policy)
    ingress.route("view", on=("viewed",), mode="per_event", kind="contact.viewed", retry=policy)
    ingress.route("bill", on=("viewed",), mode="per_event", kind="contact.billed", target_lane="invoice", retry=policy)
    told = History(seed, ingress)
    flows.flow("test.record")(told.execute)
    try:
        yield told
    finally:
        flows.forget("test.record")


@pytest.mark.parametrize("seed", range(6))
def test_the_audit_holds_after_every_step(seed: int) -> None:
    with history(seed) as told:
        for _ in range(40):
            told.step()
            report = audit_everything()
            assert report.ok, (told.steps, report.violations)
        told.settle()
    report = audit_everything()
    assert report.ok, (told.steps, report.violations)
    assert report.checked["payload_hash"] == Event.objects.count() > 10


def test_what_the_engine_did_can_be_traced() -> None:
    with history(0) as told:
        told.calm = True
        told.ingress.admit(change(7, id="evt-7"), change(7), change(7, id="view-7", kind="viewed"))
        drain_claims()
        code, answer = run("trace", "evt-7")
        assert code == 0
        assert [receipt["state"] for receipt in answer["receipts"]] == ["routed"]
        (item,) = answer["work_items"]
        assert (item["state"], item["lane"]) == ("processed", "contact:7")
        assert run("work", "show", item["work_id"])[1]["inputs"]["count"] == 2
        assert {row["work_id"] for row in run("trace", "contact:7")[1]["work_items"]} > {item["work_id"]}
        told.calm = False
