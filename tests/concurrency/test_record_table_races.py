"""Two workers fold into one record: the second waits, reads what the first committed, and loses nothing of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Queue

import pytest
from django.db import connection, transaction

from connectors.flows.record_fold import properties_of
from connectors.flows.record_table import record_table
from connectors.models import Record
from connectors.registry import installed_packs
from projection.database.transactions import run_unit
from projection.facts import RouteFacts
from projection.flows import Generation
from projection.testing import make_generation, make_input, make_route
from tests.support import factories
from tests.support.lock_waits import await_lock_wait, own_connection_id


@pytest.fixture
def route(database: None) -> Iterator[RouteFacts]:
    installed_packs.of.forget()
    settings = {"kind": "'order'", "source_type": "'order'", "source_id": "id"}
    row = factories.install("generic", settings=settings)
    yield make_route(pack_id=row.id, pack_name="generic", event_kind="order.changed")
    installed_packs.of.forget()


def generation(route: RouteFacts, ordinal: int, id: str = "7", **properties: int) -> Generation:
    return make_generation(make_input(properties, ordinal=ordinal, source=("order", id)), route=route, source=("order", id))


class Rival:
    """A second worker: a thread with a connection of its own."""

    def __init__(self, *batch: Generation) -> None:
        self._connection_ids: Queue[int] = Queue()
        self.failure: BaseException | None = None
        self._batch = list(batch)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self.connection_id = self._connection_ids.get(timeout=10)

    def _run(self) -> None:
        try:
            self._connection_ids.put(own_connection_id())
            run_unit("execute", lambda: record_table(self._batch))
        except BaseException as error:  # noqa: BLE001  # handed to the test thread, which raises it
            self.failure = error
        finally:
            connection.close()

    def join(self) -> None:
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()
        if self.failure:
            raise self.failure


def texts(source_id: str = "7") -> dict[str, str]:
    return {name: held.text for name, held in properties_of(Record.objects.get(source_id=source_id).properties).items()}


def test_both_insert_the_record_and_both_facts_are_in_it(route: RouteFacts) -> None:
    with transaction.atomic():
        record_table([generation(route, 1, a=1, b=1)])
        rival = Rival(generation(route, 2, b=2, c=2))
        await_lock_wait(rival.connection_id)
    rival.join()
    assert texts() == {"a": "1", "b": "2", "c": "2"}
    assert Record.objects.get().event_count == 2


def test_the_older_fact_that_comes_second_overwrites_nothing(route: RouteFacts) -> None:
    record_table([generation(route, 1, a=1)])
    with transaction.atomic():
        record_table([generation(route, 9, a=9)])
        rival = Rival(generation(route, 5, a=5, b=5))
        await_lock_wait(rival.connection_id)
    rival.join()
    assert texts() == {"a": "9", "b": "5"}
    assert Record.objects.get().event_count == 3


def test_the_second_starts_from_nothing_when_the_first_rolls_back(route: RouteFacts) -> None:
    with transaction.atomic():
        record_table([generation(route, 1, a=1)])
        rival = Rival(generation(route, 2, b=2))
        await_lock_wait(rival.connection_id)
        transaction.set_rollback(True)
    rival.join()
    assert texts() == {"b": "2"}
    assert Record.objects.get().event_count == 1


def test_many_workers_over_the_same_records_in_any_order_lose_no_fact(route: RouteFacts) -> None:
    ids = [str(number) for number in range(12)]
    rivals = [
        Rival(*(generation(route, 100 + worker, id, **{f"w{worker}": worker}) for id in (ids if worker % 2 else reversed(ids))))
        for worker in range(4)
    ]
    for rival in rivals:
        rival.join()
    for id in ids:
        assert texts(id) == {f"w{worker}": str(worker) for worker in range(4)}
        assert Record.objects.get(source_id=id).event_count == 4
