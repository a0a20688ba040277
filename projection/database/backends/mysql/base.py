"""Django's engine for MySQL and MariaDB, with connections that last."""

from __future__ import annotations

from django.db.backends.mysql import base

from projection.database.backends.lasting import LastingMixin


class DatabaseWrapper(LastingMixin, base.DatabaseWrapper):
    """What `ENGINE` names."""
