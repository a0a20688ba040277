"""Keeps the promise of `ssl=required` on every connection.

MariaDB's client library (3.3) takes `ssl_mode=REQUIRED` as a wish: with a server that offers no TLS it goes on in the clear. So
each new connection is looked at once, before anything else is sent over it.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from ops_ui.config.database_url import demands_tls

TLS_FAILED: Final = 2026


def register() -> None:
    """Have every connection of this process looked at. Django offers no other place between connecting and the first statement."""
    connection_created.connect(refuse_clear_text, dispatch_uid="headrace-tls")


def refuse_clear_text(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Close a new connection that must be encrypted and is not. Raises OperationalError."""
    if demands_tls(connection.settings_dict) and not is_encrypted(connection.connection):
        connection.close()
        raise OperationalError(TLS_FAILED, "HEADRACE_DATABASE_URL requires TLS, but the server does not offer it")


def is_encrypted(connection: Any) -> bool:
    """Whether this connection is under TLS. MariaDB's client library takes `ssl_mode=REQUIRED` as a wish, so it must be looked up."""
    with closing(connection.cursor()) as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        row = cursor.fetchone()
    return bool(row and row[1])
