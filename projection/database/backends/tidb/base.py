"""The engine of django-tidb, with connections that last."""

from __future__ import annotations

from django_tidb import base

from projection.database.backends.lasting import LastingMixin


class DatabaseWrapper(LastingMixin, base.DatabaseWrapper):  # type: ignore[misc]  # django-tidb has no types
    """What `ENGINE` names."""
