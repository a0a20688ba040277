"""Deadlocks, lock time-outs and TiDB's conflict codes at any statement and at COMMIT lose, double and half-store nothing."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection

from connectors import audit_log
from connectors.models import AuditEntry, Receipt
from connectors.routing.router import drain_receipts
from connectors.routing.sweep import sweep
from projection import flows
from projection.database import transactions
from projection.execution.worker import drain_claims
from projection.flows import Generation
from projection.integrity.repair import repair
from projection.models import Event, WorkItem
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.gates import COMMIT, at_each_statement
from tests.support.rivals import Rival
from tests.support.scale import size
from tests.support.workers_by_hand import let_leases_run_out

pytestmark = [pytest.mark.usefixtures("sound_database"), pytest.mark.timeout(1200)]

PRODUCERS, CLAIMERS, SWEEPERS, SOURCES = 8, 8, 2, 50
EVENTS_EACH = size(25, 500)
CODES = [1020, 1205, 1213, 8002, 8022, 8028, 9007]


class Faults:
    """Every so often the server refuses a statement or a COMMIT with one of the conflict codes."""

    def __init__(self, seed: int, one_in: int = 40) -> None:
        self._chance = random.Random(seed)
        self._one_in = one_in
        self.injected: Counter[tuple[int, str]] = Counter()

    def meet(self, sql: str) -> None:
        if self._chance.randrange(self._one_in) == 0:
            code = self._chance.choice(CODES)
            self.injected[code, "COMMIT" if sql == COMMIT else "statement"] += 1
            raise OperationalError(code, "injected")

    def until_done(self, work: Callable[[], Any]) -> Any:
        """Repeat work under faults as a resident loop does: a conflict outside of a unit, or too many, means again later."""
        while True:
            try:
                with at_each_statement(self.meet):
                    return work()
            except DatabaseError as error:
                if not error.args or error.args[0] not in CODES:
                    raise


def deliver(ingress: Ingress, faults: Faults, first: int) -> None:
    """A provider's connector: the same delivery again until it is acknowledged; bodies of five."""
    for start in range(first, first + EVENTS_EACH, 5):
        items = [change(number % SOURCES, id=f"event-{number}") for number in range(start, start + 5)]
        while faults.until_done(lambda body=items: ingress.send(*body)).code not in ("accepted", "duplicate"):
            continue


@contextmanager
def writing_flow() -> Iterator[None]:
    """An atomic flow that writes one row for each item that it runs."""

    def run(generation: Generation) -> None:
        audit_log.record("flow", "ran", generation.work_id)

    flows.flow("test.record", atomic=True)(run)
    try:
        yield
    finally:
        flows.forget("test.record")


def test_totals_are_exact_and_nothing_runs_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    retried: list[str] = []
    log = transactions.log_event
    monkeypatch.setattr(transactions, "log_event", lambda event, **facts: (retried.append(event), log(event, **facts))[1])
    ingress = open_ingress()
    ingress.route(queue_class="bulk")
    ingress.route("single", mode="per_event", kind="contact.single")
    faults = [Faults(seed) for seed in range(PRODUCERS + CLAIMERS + SWEEPERS)]
    delivered = threading.Event()

    def until_delivered(mine: Faults, work: Callable[[], Any]) -> None:
        while not delivered.is_set():
            mine.until_done(work)

    def route_and_claim() -> None:
        drain_receipts(batch=5)
        drain_claims(batch=20)

    def sweep_and_repair() -> None:
        sweep()
        repair()

    with writing_flow():
        producers = [Rival(lambda mine=faults[n], at=n: deliver(ingress, mine, at * EVENTS_EACH)) for n in range(PRODUCERS)]
        workers = [Rival(lambda mine=mine: until_delivered(mine, route_and_claim)) for mine in faults[PRODUCERS:-SWEEPERS]]
        workers += [Rival(lambda mine=mine: until_delivered(mine, sweep_and_repair)) for mine in faults[-SWEEPERS:]]
        for producer in producers:
            producer.result(600)
        delivered.set()
        for worker in workers:
            worker.result(600)
        let_leases_run_out()  # of batches whose inputs could not be read
        while drain_receipts().seen or drain_claims():
            continue
    events = PRODUCERS * EVENTS_EACH
    assert Event.objects.count() == 2 * events, "one for each of the two routes"
    assert set(Receipt.objects.values_list("state", flat=True)) == {"routed"}
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}
    written = AuditEntry.objects.filter(action="ran").values_list("target", flat=True)
    assert sorted(written) == sorted(WorkItem.objects.values_list("work_id", flat=True)), (
        "an atomic flow's writes, once for each item"
    )
    assert WorkItem.objects.filter(execution_class="per_event").count() == events
    injected = sum((one.injected for one in faults), Counter())
    assert {where for _, where in injected} == {"COMMIT", "statement"}
    assert retried.count("conflict") > 0


@pytest.mark.parametrize("code", CODES)
def test_a_conflict_at_each_statement_of_an_admission_in_turn_changes_nothing_but_its_number(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    retried: list[int] = []
    monkeypatch.setattr(transactions, "log_event", lambda event, **facts: retried.append(facts["error_code"]))
    ingress = open_ingress()
    ingress.route()
    ingress.route("single", mode="per_event", kind="contact.single", queue_class="bulk")
    for turn in range(1, 100):
        ingress.send(change(1), change(f"turn-{turn}"))
        met: list[str] = []
        in_unit: list[bool] = []

        def fail_once(sql: str, at: int = turn, seen: list[str] = met, inside: list[bool] = in_unit) -> None:
            seen.append(sql)
            if len(seen) == at:
                inside.append(sql == COMMIT or connection.in_atomic_block)
                raise OperationalError(code, "injected")

        retried.clear()
        try:
            with at_each_statement(fail_once):
                drain_receipts()
        except OperationalError:
            assert in_unit == [False], "a unit tries again by itself"
            drain_receipts()  # it failed at a plain read around the unit: the loop tries again
        if len(met) < turn:
            break
        assert retried == ([code] if in_unit == [True] else []), "the whole batch once more, not receipt by receipt"
        assert Event.objects.count() == 4 * turn
    assert COMMIT in met
    assert sorted(Event.objects.values_list("enqueue_ordinal", flat=True)) == list(range(1, 4 * turn + 1))
