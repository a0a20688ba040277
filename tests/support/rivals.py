"""A second connection, acting at the same time: another process, as far as the database can tell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Queue
from typing import Any, Generic, TypeVar

from django.db import connection, transaction

from connectors.models import Receipt
from connectors.routing import route_table, router
from projection.completion.complete import end_attempts
from projection.execution.attempts import Attempt
from projection.states import State
from tests.support.deliveries import Ingress
from tests.support.lock_waits import await_lock_wait, own_connection_id

T = TypeVar("T")
PATIENCE_SECONDS = 30.0


class Rival(Generic[T]):
    """Does `act` in a thread with a connection of its own."""

    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act
        self._connection_ids: Queue[int] = Queue()
        self._result: list[T] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._connection_id = self._connection_ids.get(timeout=PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            self._connection_ids.put(own_connection_id())
            self._result.append(self._act())
        except BaseException as error:  # noqa: BLE001  # handed to the test, which raises it
            self._failure = error
        finally:
            connection.close()

    def waits(self) -> None:
        """Returns once the server sees it waiting for a lock."""
        await_lock_wait(self._connection_id)

    def ends_at_once(self) -> T:
        """Its result, although our transaction is open: it needs none of our locks."""
        assert connection.in_atomic_block
        return self.result(5.0)

    def result(self, patience: float = PATIENCE_SECONDS) -> T:
        self._thread.join(timeout=patience)
        assert not self._thread.is_alive(), "it still waits"
        if self._failure:
            raise self._failure
        return self._result[0]


@contextmanager
def admission_open(ingress: Ingress, *events: dict[str, Any]) -> Iterator[None]:
    """An admission of the events that has written everything and commits when the block ends."""
    receipt_id = ingress.send(*events).receipt_id
    assert receipt_id is not None
    book = route_table.load(ingress.pack.namespace)
    readings = router._readings([receipt_id], book)
    with transaction.atomic():
        router._admit(book, readings)
        yield
    assert Receipt.objects.get(id=receipt_id).state in ("routed", "partial")


@contextmanager
def completion_open(attempts: Sequence[Attempt], state: State = State.PROCESSED, **more: Any) -> Iterator[None]:
    """A completion of the attempts that has written everything and commits when the block ends."""
    with transaction.atomic():
        ended = end_attempts([attempt.ending(state, **more) for attempt in attempts])
        assert not ended.lost
        yield
