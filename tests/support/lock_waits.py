"""Sees that another connection waits for a lock, on each supported server, so that a test never sleeps on a guess."""

from __future__ import annotations

import random
import time

from django.db import connection

PATIENCE_SECONDS = 20.0
LOOK_SECONDS = (0.12, 0.4)
"""Between two looks, at random. InnoDB answers from a copy that it renews only when nobody has looked for 0.1 s: suites that look at one
server in step would keep each other from ever seeing news."""


def await_lock_wait(connection_id: int) -> None:
    """Return as soon as the server's connection waits for a row lock. Raises AssertionError when it does not come to it."""
    if "TiDB" in connection.mysql_server_data["version"]:
        text = (
            "SELECT COUNT(*) FROM information_schema.DATA_LOCK_WAITS w JOIN information_schema.TIDB_TRX t "
            "ON t.ID = w.TRX_ID WHERE t.SESSION_ID = %s"
        )
    else:
        text = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT' AND trx_mysql_thread_id = %s"
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        with connection.cursor() as cursor:
            cursor.execute(text, [connection_id])
            if cursor.fetchone()[0]:
                return
        time.sleep(random.uniform(*LOOK_SECONDS))  # nothing announces a lock wait
    raise AssertionError(f"connection {connection_id} never waited for a lock")


def own_connection_id() -> int:
    """The server's id of this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        return int(cursor.fetchone()[0])
