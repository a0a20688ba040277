"""Slots of resident loops: at most one loop a slot and host, however many clusters, schedules and continuations start it.

A slot is a named lock of the database server, held by the loop's own connection: a dead process frees it, nothing needs cleaning up.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


def _lock_name(kind: str, slot: int) -> str:
    """At most 64 characters (MySQL's limit), distinct per database, host, kind and slot."""
    place = f"{connection.settings_dict['NAME']}@{socket.gethostname()}"
    return f"headrace:{hashlib.sha256(place.encode()).hexdigest()[:24]}:{kind}:{slot}"


@contextmanager
def slot(kind: str, number: int) -> Iterator[bool]:
    """Hold a slot; False when another process has it. Never waits. Two statements."""
    name = _lock_name(kind, number)
    with connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 0)", [name])
        held = cursor.fetchone()[0] == 1
    try:
        yield held
    finally:
        if held and connection.connection is not None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT RELEASE_LOCK(%s)", [name])
