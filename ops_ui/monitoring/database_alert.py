"""The alert `database`: a database that cannot be reached, or takes no writes, cannot keep an alert about itself.

So each host tells for itself: one of its web processes, the one that holds the lock on a file under HEADRACE_STATE_DIR. The file says
what was told, so that a restart tells nothing twice. Times are this host's, as no other clock answers.
"""

from __future__ import annotations

import json
import socket
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from ops_ui.monitoring import alert_messages, alerts
from ops_ui.monitoring.alert_messages import Transition
from ops_ui.monitoring.alerts import Cause, Change, Known
from ops_ui.monitoring.health import NotReady
from ops_ui.start.locks import FileLock
from projection.cli import iso
from projection.logs import log_event

NAME: Final = "database"
FILE: Final = "database-alert.json"
CODES: Final = frozenset({"database_unreachable", "database_read_only", "database_full"})
RAISED_AFTER: Final = timedelta(seconds=60)
"""A restart or failover of the database is over by then."""


@dataclass(frozen=True, slots=True)
class Message:
    """To one channel, under an id that stays the same."""

    channel: str
    message_id: str
    subject: str
    body: str


@dataclass(slots=True)
class DatabaseAlert:
    """What a process of this host knows. Call `look` about twice a minute; only the process whose turn it is does something."""

    path: Path
    _lock: FileLock | None = None
    _known: Known | None = None
    _seen_since: datetime | None = None
    _unsent: list[Message] = field(default_factory=list)

    def is_ours(self) -> bool:
        """Whether this process tells. Where the file cannot be made each one does: to be told twice is better than not at all."""
        try:
            self._lock = self._lock or FileLock(self.path)
        except OSError:
            return True
        return self._lock.acquire()

    def look(self, problem: NotReady | None, now: datetime) -> Transition | None:
        """Compare what `health.readiness` found with what was told, and tell the difference; send again what was not taken."""
        known = self._known = self._known or self._read(now)
        cause = Cause(problem.code, f"{socket.gethostname()}: {problem.reason}") if problem and problem.code in CODES else None
        self._seen_since = (self._seen_since or now) if cause else None
        is_young = self._seen_since is not None and now - self._seen_since < RAISED_AFTER
        change = Change.NONE if is_young and not known.is_raised else alerts.decide(known, cause, now)
        made = None
        if change in (Change.RAISE, Change.RECOVER):
            made = Transition(NAME, cause.code if cause else "recovered", cause.reason if cause else "", now, known.changed_at)
            self._known = Known(NAME, change is Change.RAISE, 0, None, now)
            self._tell(made)
        elif change is not Change.NONE:
            self._known = Known(NAME, known.is_raised, 0, now if change is Change.CLEAR else None, known.changed_at)
        self._unsent = [message for message in self._unsent if not self._is_sent(message)]
        return made

    def _tell(self, made: Transition) -> None:
        log_event(
            "alert", level="warning" if made.state == "raised" else "info", alert=NAME, state=made.state, reason=made.reason or None
        )
        self._write(made)
        # One that was not taken yet is passed over: what holds now is what somebody has to know.
        self._unsent = [
            Message(channel, f"alert_{uuid.uuid4().hex}", alert_messages.subject(made), alert_messages.body(made))
            for channel in alert_messages.channels()
        ]

    def _is_sent(self, message: Message) -> bool:
        error = alert_messages.attempt(message.channel, message.message_id, message.subject, message.body)
        if error is not None:
            log_event("alert", level="error", state="not_sent", channel=message.channel, error=error)
        return error is None

    def _read(self, now: datetime) -> Known:
        try:
            stored = json.loads(self.path.read_bytes() or b"{}")
            return Known(NAME, bool(stored["raised"]), 0, None, datetime.fromisoformat(stored["at"]))
        except (OSError, ValueError, KeyError, TypeError):  # nothing was told yet, or the disk had no space for it
            return Known(NAME, is_raised=False, step=0, clear_since=None, changed_at=now)

    def _write(self, made: Transition) -> None:
        text = json.dumps({"raised": made.state == "raised", "at": iso(made.at)})
        try:
            self.path.write_text(text, encoding="ascii")  # the lock is on this file, so no other one may take its place
        except OSError as error:
            log_event("alert", level="warning", alert=NAME, state="not_kept", error=str(error))
