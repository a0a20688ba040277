"""The engine of django-tidb, with connections that last and migrations that resume."""

from __future__ import annotations

from django_tidb import base

from projection.database.backends.lasting import LastingMixin
from projection.database.backends.resuming import ResumingEditor


class SchemaEditor(ResumingEditor, base.DatabaseSchemaEditor):  # type: ignore[misc]  # as below
    """Of `DatabaseWrapper`."""


class DatabaseWrapper(LastingMixin, base.DatabaseWrapper):  # type: ignore[misc]  # django-tidb has no types
    """What `ENGINE` names."""

    SchemaEditorClass = SchemaEditor
