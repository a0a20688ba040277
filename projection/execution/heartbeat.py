"""Heartbeat: a thread with its own connection that keeps a process's worker row and its leases alive while flows run
(docs/protocol.md#lease).

A flow past its time-out is no longer kept alive: its lease runs out and another worker takes the item over.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from time import monotonic
from types import TracebackType
from typing import Final, Literal, Self

from django.db import DatabaseError, InterfaceError, connection

from projection import flows
from projection.database.catalogue import execute
from projection.database.transactions import run_unit
from projection.execution import stuck_threads
from projection.leases import beat_seconds, owner_name
from projection.logs import log_event
from projection.models import WorkItem
from projection.safe_text import error_text

LAST_WORDS: Final = 2
"""Tries of a process that leaves to take its row away: the server may have ended the idle connection."""
SILENT_SECONDS: Final = 3600
"""Rows of processes that died without a word are forgotten after this."""

LeaseKey = tuple[int, str]
"""(Work item id, token)."""


def code_version() -> str:
    """Version of the installed code, for the worker list."""
    try:
        return version("headrace")
    except PackageNotFoundError:
        return "source"


class Heartbeat:
    """The thread and what it keeps alive; a context manager around a worker's or router's life."""

    def __init__(self, kind: Literal["worker", "router"], *, lease_seconds: int = 0) -> None:
        self.id = str(uuid.uuid4())
        self.owner = owner_name(socket.gethostname(), os.getpid(), self.id)
        self._kind = kind
        self._lease_seconds = lease_seconds
        self._lock = threading.Lock()
        self._kept: dict[LeaseKey, float | None] = {}
        """Lease → when its flow's time-out strikes (monotonic); None: the flow has not started."""
        self._leave_at: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._beat()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def keep(self, item_ids: Iterable[int], token: str) -> None:
        """Extend the leases of these items until they are dropped."""
        with self._lock:
            self._kept.update(dict.fromkeys([(item, token) for item in item_ids], None))

    def started(self, lease: LeaseKey, timeout: float) -> None:
        """The item's flow runs from now: its lease is extended for at most `timeout` seconds more."""
        with self._lock:
            if lease in self._kept:
                self._kept[lease] = monotonic() + timeout

    def watch(self, timeout: float | None) -> None:
        """From now an atomic flow has the worker's own thread for `timeout` seconds; None: it has returned.

        One that overruns this by the grace time ends the process: its lease is no longer extended, so another takes the item over.
        """
        self._leave_at = None if timeout is None else monotonic() + timeout + stuck_threads.ATOMIC_GRACE_SECONDS

    def drop(self, leases: Iterable[LeaseKey]) -> None:
        """These attempts have ended. (An item may be under another lease here by now, which goes on.)"""
        with self._lock:
            for lease in leases:
                self._kept.pop(lease, None)

    def _run(self) -> None:
        period = beat_seconds(self._lease_seconds)
        while not self._stop.wait(period):
            leave_at = self._leave_at
            if leave_at is not None and monotonic() >= leave_at:
                stuck_threads.leave_now("an atomic flow did not return in time; the process exits without waiting for it")
            self._beat_safely(self._beat)
        for _ in range(LAST_WORDS):
            if self._beat_safely(lambda: _send("unregister_worker", id=self.id)):
                break
        connection.close()

    def _beat_safely(self, beat: Callable[[], object]) -> bool:
        try:
            beat()
        except (DatabaseError, InterfaceError) as error:
            log_event("heartbeat", level="warning", worker=self.owner, error=error_text(error))
            connection.close()
            return False
        return True

    def _beat(self) -> None:
        _send(
            "register_worker",
            id=self.id,
            kind=self._kind,
            host=socket.gethostname(),
            pid=os.getpid(),
            code_version=code_version(),
            flows_hash=flows.flows_hash(),
        )
        for token, ids in self._to_extend().items():
            extended = WorkItem.objects.extend_leases(ids, token, self._lease_seconds)
            if extended < len(ids):
                log_event(
                    "heartbeat", level="warning", worker=self.owner, count=len(ids) - extended, reason="leases lost or expired"
                )

    def _to_extend(self) -> dict[str, list[int]]:
        """Token → items to keep alive: running ones within their time-out; waiting ones only while no flow overruns its own.

        A flow that does not return keeps its siblings from ever starting here: another worker must be able to take them.
        """
        now = monotonic()
        found: dict[str, list[int]] = {}
        with self._lock:
            overrun = any(deadline is not None and deadline <= now for deadline in self._kept.values())
            for (item, token), deadline in self._kept.items():
                if (deadline is None and not overrun) or (deadline is not None and deadline > now):
                    found.setdefault(token, []).append(item)
        return found


def forget_silent_workers() -> int:
    """Remove the rows of processes that died without a word. One statement."""
    return _send("forget_silent_workers", seconds=SILENT_SECONDS)


def _send(statement: str, **values: object) -> int:
    """Workers of all processes share one small table: a deadlock among them is tried again, not a fault."""
    return run_unit("heartbeat", lambda: execute(statement, **values), one_statement=True)
