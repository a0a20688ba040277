"""Tables of the console and of the watch: failed logins, alerts, what is told of them, and failed signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from django.db import connection, models

from projection.database.catalogue import catalogue

_SQL: Final = Path(__file__).parent


def _execute(name: str, **parameters: Any) -> int:
    with connection.cursor() as cursor:
        return int(cursor.execute(catalogue(_SQL)[name], parameters) or 0)


class LoginFailuresManager(models.Manager["LoginFailures"]):
    """Statements of `console/login/logins.sql`; each joins its caller's transaction."""

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


class Alert(models.Model):
    """One alert that this code knows, raised or not; `alerts.py` moves it. The row `watch` keeps when somebody last looked."""

    name = models.CharField(max_length=32, primary_key=True, db_column="Name")
    raised = models.BooleanField(db_column="Raised", default=False)
    step = models.BigIntegerField(db_column="Step", default=0)
    """Counts changes: each is made by compare-and-swap on it."""
    changed_at = models.DateTimeField(db_column="ChangedAt")
    clear_since = models.DateTimeField(db_column="ClearSince", null=True)
    """Of a raised one: since when its cause is gone. It recovers a little later."""
    code = models.CharField(max_length=64, db_column="Code", default="")
    reason = models.TextField(db_column="Reason", default="")

    class Meta:
        db_table = "headrace_alert"
        default_permissions = ()

    def __str__(self) -> str:
        return f"alert {self.name}"


class AlertMessage(models.Model):
    """One message about a transition for one channel; `alert_messages.py` sends it."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    channel = models.CharField(max_length=16, db_column="Channel")
    message_id = models.CharField(max_length=64, db_column="MessageId")
    """The same at each try: `webhook-id`, and part of a mail's Message-ID."""
    subject = models.CharField(max_length=512, db_column="Subject")
    body = models.TextField(db_column="Body")
    attempts = models.IntegerField(db_column="Attempts", default=0)
    next_try_at = models.DateTimeField(db_column="NextTryAt", null=True)
    """NULL: it was sent, or given up."""
    sent_at = models.DateTimeField(db_column="SentAt", null=True)
    last_error = models.TextField(db_column="LastError", null=True)
    created_at = models.DateTimeField(db_column="CreatedAt")

    class Meta:
        db_table = "headrace_alert_message"
        default_permissions = ()
        constraints = [  # the second columns make them unique: such an index is made with its table, in one statement
            models.UniqueConstraint(fields=["next_try_at", "id"], name="ux_alert_message_due"),
            models.UniqueConstraint(fields=["created_at", "id"], name="ux_alert_message_created"),
        ]

    def __str__(self) -> str:
        return f"{self.channel}: {self.subject}"


class SignatureFailures(models.Model):
    """Deliveries of an endpoint whose signature did not match, within one minute."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    endpoint = models.CharField(max_length=190, db_column="Endpoint")
    minute = models.DateTimeField(db_column="Minute")
    failures = models.BigIntegerField(db_column="Failures")

    class Meta:
        db_table = "headrace_signature_failures"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "minute"], name="ux_signature_failures"),
            models.UniqueConstraint(fields=["minute", "id"], name="ux_signature_failures_minute"),
        ]

    def __str__(self) -> str:
        return f"{self.endpoint} {self.minute}: {self.failures}"
