"""How far the service is behind what it has accepted: looked at once a second on a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import MySQLdb

LOOK_SECONDS: Final = 1.0
LIVE: Final = "SELECT COUNT(*) FROM `_System_ConnectorWorkItem` WHERE State IN ('pending', 'blocked', 'processing', 'retry')"
PENDING: Final = "SELECT COUNT(*) FROM `_System_ConnectorReceipt` WHERE State = 'pending'"
LOOPS: Final = "SELECT Pid, Kind FROM `_System_ConnectorWorker`"


class Watch:
    """Asks the database; what it said last stays true while it is away."""

    def __init__(self, connect: Callable[[], Any], sample: Callable[[], None]) -> None:
        self._connect = connect
        self._sample = sample
        self._connection: Any = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.behind = 0
        """Receipts that are pending and work items that have not ended."""
        self.furthest = 0
        self.loops: dict[int, str] = {}
        """Process id → kind of each loop that is registered."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
        self._forget()

    def _run(self) -> None:
        while not self._end.wait(LOOK_SECONDS):
            self._sample()
            try:
                self._look()
            except MySQLdb.Error:  # it is away: that is what the soak is about
                self._forget()

    def _look(self) -> None:
        if self._connection is None:
            self._connection = self._connect()
        with closing(self._connection.cursor()) as cursor:
            counts = []
            for sql in (LIVE, PENDING):
                cursor.execute(sql)
                counts.append(int(cursor.fetchone()[0]))
            cursor.execute(LOOPS)
            self.loops = {pid: str(kind) for pid, kind in cursor.fetchall()}
        self.behind = sum(counts)
        self.furthest = max(self.furthest, self.behind)

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
