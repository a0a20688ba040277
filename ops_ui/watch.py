"""The watch: looks twice a minute whether an alert begins or is over, and tells. Of all processes of all hosts one has the turn.

A thread of each web process, so that a cluster that has ended is noticed; and a task of the cluster once a minute, so that one goes
on without web servers. It never runs in a loop that does work. Without a database each host's web processes tell that one alert.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Final

from django.conf import settings
from django.db import connection

from ops_ui.monitoring import alert_messages, alerts, database_alert, health, signature_failures
from ops_ui.monitoring.database_alert import DatabaseAlert
from projection.foreign_code import FAILURES
from projection.logs import log_event
from projection.runtime.django_q.resident_tasks import unless_away
from projection.safe_text import error_text

_made: Final = threading.Event()


def look() -> bool:
    """Whether it was this process's turn. Two statements when it was not. Raises the database's error."""
    if not _made.is_set():
        alerts.make()
        _made.set()
    signature_failures.tell()
    if not alerts.take_turn():
        return False
    alerts.look()
    alert_messages.send_due()
    return True


def look_at_the_database(alert: DatabaseAlert) -> None:
    """Raises nothing of the database."""
    if alert.is_ours():
        alert.look(health.readiness(), datetime.now(UTC))


def task(_number: int) -> bool:
    """Entry point of django-q2."""
    return unless_away(look, otherwise=False)


def start() -> None:
    """Start the thread of this process; once, after the fork."""
    threading.Thread(target=_watch, name="watch", daemon=True).start()


def _watch() -> None:
    pause = threading.Event()
    of_the_database = DatabaseAlert(settings.STATE_DIR / database_alert.FILE)
    while not pause.wait(alerts.PERIOD_SECONDS):
        try:
            look_at_the_database(of_the_database)
            look()
        except FAILURES as error:  # the watch outlives any single fault; it says so and looks again
            log_event("alert", level="warning", state="not_looked", error=error_text(error))
        finally:
            connection.close()
