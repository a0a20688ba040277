"""Slots of resident loops: at most one loop a slot and host, however many clusters, schedules and continuations start it.

A slot may also be one of the whole installation, whatever host it is taken on (`everywhere`).

A slot is a named lock of the database server, held by the loop's own connection: a dead process frees it, nothing needs cleaning up.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, connection


def _lock_name(kind: str, slot: int, host: str) -> str:
    """At most 64 characters (MySQL's limit), distinct per database, host, kind and slot."""
    place = f"{connection.settings_dict['NAME']}@{host}"
    return f"headrace:{hashlib.sha256(place.encode()).hexdigest()[:24]}:{kind}:{slot}"


class Slot:
    """One slot, as seen by the loop that wants it."""

    def __init__(self, kind: str, number: int, *, everywhere: bool = False) -> None:
        self._name = _lock_name(kind, number, "" if everywhere else socket.gethostname())
        self._session: object = None

    def take(self) -> bool:
        """Whether the slot is ours now. Never waits. One statement."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT GET_LOCK(%s, 0)", [self._name])
            held = bool(cursor.fetchone()[0] == 1)
        self._session = connection.connection if held else None
        return held

    def keep(self) -> bool:
        """Whether the slot is still ours: a lost connection frees it, so it is taken again, unless another loop was faster.

        No statement while the connection is the one that holds it. True while the database is away: nobody can tell.
        """
        if connection.connection is None or connection.connection is self._session:
            return True
        try:
            return self.take()
        except (DatabaseError, InterfaceError):
            return True

    def leave(self) -> None:
        """Free the slot, if this connection holds it. One that was lost has freed it already."""
        if self._session is not None and connection.connection is self._session:
            with contextlib.suppress(DatabaseError, InterfaceError), connection.cursor() as cursor:
                cursor.execute("SELECT RELEASE_LOCK(%s)", [self._name])
        self._session = None


@contextmanager
def slot(kind: str, number: int, *, everywhere: bool = False) -> Iterator[Slot | None]:
    """Hold a slot; None when another process has it. Never waits. Two statements."""
    wanted = Slot(kind, number, everywhere=everywhere)
    held = wanted.take()
    try:
        yield wanted if held else None
    finally:
        wanted.leave()
