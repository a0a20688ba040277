"""The console's own table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from django.db import connection, models

from projection.statements import catalogue

_SQL: Final = Path(__file__).parent / "sql"


def _execute(name: str, **parameters: Any) -> int:
    with connection.cursor() as cursor:
        return int(cursor.execute(catalogue(_SQL)[name], parameters) or 0)


class LoginFailuresManager(models.Manager["LoginFailures"]):
    """Statements of `sql/logins.sql`; each joins its caller's transaction."""

    def count_login_attempt(self, username: str, address: str, seconds: int) -> None:
        _execute("count_login_attempt", username=username, address=address, seconds=seconds)

    def read_login_counts(self, username: str, address: str) -> list[tuple[str, int, int]]:
        """(scope, failures, microseconds left)."""
        with connection.cursor() as cursor:
            cursor.execute(catalogue(_SQL)["read_login_counts"], {"username": username, "address": address})
            return [(str(scope), int(failures), int(left)) for scope, failures, left in cursor.fetchall()]

    def forgive_login(self, username: str, address: str) -> int:
        return _execute("forgive_login", username=username, address=address)

    def prune_login_failures(self, most: int) -> int:
        return _execute("prune_login_failures", most=most)


class LoginFailures(models.Model):
    """Failed logins within one window of time, of an address, of a name, or of both together.

    The columns have the database's own collation, as `auth_user` has: whatever finds a user under another spelling finds its count.
    """

    id = models.BigAutoField(primary_key=True, db_column="Id")
    scope = models.CharField(max_length=8, db_column="Scope")
    username = models.CharField(max_length=150, db_column="Username")
    address = models.CharField(max_length=49, db_column="Address")
    failures = models.PositiveIntegerField(db_column="Failures")
    expires_at = models.DateTimeField(db_column="ExpiresAt")

    objects: LoginFailuresManager = LoginFailuresManager()

    class Meta:
        db_table = "headrace_login_failures"
        default_permissions = ()
        # The second one is an index that is made with the table, in one statement: a migration that was cut off can run again.
        constraints = [
            models.UniqueConstraint(fields=["scope", "username", "address"], name="ux_login_failures"),
            models.UniqueConstraint(fields=["expires_at", "id"], name="ux_login_failures_expiry"),
        ]

    def __str__(self) -> str:
        return f"{self.username or 'any name'} from {self.address or 'anywhere'}"
