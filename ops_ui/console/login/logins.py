"""The console's login, throttled: after too many failures no password is looked at for a while, not even the right one.

The counts lie in the database, shared by all web processes and hosts. An attempt is counted before its password is checked and
taken back when it was right, so that guesses sent at the same moment do not slip past the limit; a refused one does not count.
"""

from __future__ import annotations

from math import ceil
from typing import Any, Final

from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError

from connectors.ingress.client_address import client_address
from ops_ui.models import LoginFailures
from projection.database.transactions import run_unit
from projection.logs import log_event

WINDOW_SECONDS: Final = 15 * 60
"""From the first failure on. Long enough that guessing leads nowhere, short enough to wait for after a forgotten password."""
LIMITS: Final = {"both": 5, "address": 50, "name": 100}
"""Failures within the window: of one name from one address (nobody mistypes more often), of one address under any name (an office
behind one address has several people), and of one name from anywhere (many addresses guessing together)."""
PRUNED_AT_ONCE: Final = 100
MINUTE: Final = 60


class TooManyFailures(Exception):
    """Nothing was counted and no password may be looked at; `seconds` = how long that lasts."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def begin_attempt(username: str, address: str) -> None:
    """Count an attempt as failed until `forgive`. One transaction of two statements, and one that prunes. Raises TooManyFailures."""
    rows = LoginFailures.objects

    def unit() -> None:
        rows.count_login_attempt(username, address, WINDOW_SECONDS)
        left = [left for scope, failures, left in rows.read_login_counts(username, address) if failures > LIMITS[scope]]
        if left:  # undoes the count
            raise TooManyFailures(max(1, ceil(max(left) / 1_000_000)))

    run_unit("login", unit)
    run_unit("login_prune", lambda: rows.prune_login_failures(PRUNED_AT_ONCE), one_statement=True)


def forgive(username: str, address: str) -> None:
    """The password was right. One statement."""
    run_unit("login_forgive", lambda: LoginFailures.objects.forgive_login(username, address), one_statement=True)


def in_words(seconds: int) -> str:
    """A wait, for people: `40 seconds`, `1 minute`, `14 minutes` (rounded up)."""
    if seconds < MINUTE:
        return f"{seconds} second{'s' if seconds != 1 else ''}"
    minutes = ceil(seconds / MINUTE)
    return f"{minutes} minute{'s' if minutes != 1 else ''}"


class ConsoleLoginForm(AdminAuthenticationForm):
    """The admin's form. `wait_seconds` is set where the attempt was refused."""

    wait_seconds: int | None = None

    def clean(self) -> dict[str, Any]:
        username, address = self.cleaned_data.get("username"), client_address(self.request)  # type: ignore[arg-type]  # the view passes it
        if not username or not self.cleaned_data.get("password"):
            return super().clean()
        try:
            begin_attempt(username, address)
        except TooManyFailures as refused:
            self.wait_seconds = refused.seconds
            log_event("login", level="warning", state="refused", source=address, seconds=refused.seconds)
            raise ValidationError(
                f"Too many failed attempts. Wait {in_words(refused.seconds)}, then try again. A server administrator can "
                "lift the lockout: script/manage logins unlock",
                code="too_many_failures",
            ) from None
        cleaned = super().clean()
        forgive(username, address)
        return cleaned
