"""Django's engine for MySQL and MariaDB, with connections that last and migrations that resume."""

from __future__ import annotations

from django.db.backends.mysql import base

from projection.database.backends.lasting import LastingMixin
from projection.database.backends.resuming import ResumingEditor


class DatabaseWrapper(LastingMixin, base.DatabaseWrapper):
    """What `ENGINE` names."""

    SchemaEditorClass = ResumingEditor
