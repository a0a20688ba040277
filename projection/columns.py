"""Column types whose comparison never depends on a database's default collation."""

from __future__ import annotations

from typing import Any, Final

from django.db import models

KEY_LENGTH: Final = 68
"""`csp:` or `evt:` and 64 hex digits."""


def key(db_column: str, **options: Any) -> models.CharField[Any, Any]:
    """A hashed identity: ASCII, compared byte by byte."""
    options.setdefault("max_length", KEY_LENGTH)
    return models.CharField(db_column=db_column, db_collation="ascii_bin", **options)


def name(db_column: str, max_length: int = 190, **options: Any) -> models.CharField[Any, Any]:
    """Readable text beside a key, for people and search."""
    return models.CharField(db_column=db_column, max_length=max_length, db_collation="utf8mb4_bin", **options)


def text(db_column: str, **options: Any) -> models.TextField[Any, Any]:
    """Long text (LONGTEXT), never a JSON column: those renumber what they store."""
    return models.TextField(db_column=db_column, db_collation="utf8mb4_bin", **options)


def code(db_column: str, max_length: int = 32, **options: Any) -> models.CharField[Any, Any]:
    """A word of a closed vocabulary: a state, a class, a mode."""
    return models.CharField(db_column=db_column, max_length=max_length, db_collation="ascii_bin", **options)
