"""What is told of alerts, to a webhook and by mail: left in the database with the transition, sent afterwards, tried again on failure.

Each message goes out at least once, under an id that stays the same; a receiver ignores one that it knows. The webhook is signed as
Standard Webhooks describes, as `http_forward` is, and goes through the same client: bounded in time, to public addresses only unless
HEADRACE_FORWARD_ALLOWED_NETWORKS says otherwise, without redirects.
"""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import httpx
from django.conf import settings
from django.core.mail import EmailMessage

from connectors import http_client
from connectors.flows.connections import Destination
from connectors.flows.http_forward import signature
from projection.cli import iso
from projection.database.catalogue import Sender
from projection.database.transactions import run_unit
from projection.foreign_code import FAILURES
from projection.logs import log_event
from projection.safe_text import error_text

SEND_SECONDS: Final = 15.0
FIRST_PAUSE_SECONDS: Final = 60
"""Longer than a try may take, so that no other process begins the same message meanwhile."""
LONGEST_PAUSE_SECONDS: Final = 900
GIVE_UP_SECONDS: Final = 24 * 3600
"""After that nobody wants to be told any more."""

_sql: Final = Sender(Path(__file__).parent)


class NotSent(Exception):
    """A message was not taken; it is tried again."""


@dataclass(frozen=True, slots=True)
class Transition:
    """An alert that was raised (`code` says why) or has recovered (`code` is `recovered`), at `at`; `since`: the change before."""

    alert: str
    code: str
    reason: str
    at: datetime
    since: datetime

    @property
    def state(self) -> str:
        return "recovered" if self.code == "recovered" else "raised"

    @property
    def sentence(self) -> str:
        return self.reason or f"Raised at {iso(self.since)}, now recovered."


def leave(transition: Transition) -> None:
    """One message for each channel that is configured, in the caller's transaction."""
    for channel in channels():
        message = {"channel": channel, "message_id": f"alert_{uuid.uuid4().hex}", "subject": subject(transition)}
        _sql.execute("insert_alert_message", body=body(transition), **message)
    _sql.execute("prune_messages")


def channels() -> list[str]:
    """Where alerts are told."""
    configured = {"webhook": settings.HEADRACE_ALERT_URL, "mail": settings.HEADRACE_ALERT_MAIL}
    return [channel for channel, target in configured.items() if target]


def installation() -> str:
    """Who speaks: the public URL, else this host's name."""
    return settings.HEADRACE_PUBLIC_URL or socket.gethostname()


def subject(transition: Transition) -> str:
    """One line."""
    return f"Headrace {installation()}: {transition.alert} {transition.state}"


def body(transition: Transition) -> str:
    """The JSON text that is posted; mail says the same in words."""
    return json.dumps(
        {
            "type": f"alert.{transition.state}",
            "timestamp": iso(transition.at),
            "data": {
                "installation": installation(),
                "alert": transition.alert,
                "code": transition.code,
                "reason": transition.sentence,
            },
        }
    )


def send_due() -> int:
    """Try what is due, at most ten messages; number of those that were taken. One statement when there is none."""
    sent = 0
    for row in _sql.fetch("read_due_messages", give_up=GIVE_UP_SECONDS):
        message_id, channel, webhook_id, title, text, attempts, is_late = row
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(attempts, 8))
        begun = {"id": message_id, "attempts": attempts, "pause": pause}
        if not _execute("begin_message", **begun):
            continue
        error = attempt(channel, webhook_id, title, text)
        sent += error is None
        if error is not None:
            log_event("alert", level="error", state="not_sent", attempt=attempts + 1, channel=channel, error=error)
        if error is None or is_late:
            _execute("end_message", id=message_id, sent=int(error is None), error=error)
        else:
            _execute("note_message_error", id=message_id, error=error)
    return sent


def attempt(channel: str, webhook_id: str, title: str, text: str) -> str | None:
    """None when it was taken, else why it was not: hosts and numbers, never the URL or a secret."""
    send: Callable[[], None] = (lambda: post(webhook_id, text)) if channel == "webhook" else (lambda: mail(webhook_id, title, text))
    try:
        send()
    except FAILURES as error:  # whatever the other side or its library does, the watch goes on
        return error_text(error)
    return None


def post(webhook_id: str, text: str) -> None:
    """Raises NotSent, or what the client and the signature raise."""
    url = http_client.check_url(settings.HEADRACE_ALERT_URL)
    destination = Destination("alerts", settings.HEADRACE_ALERT_URL, (settings.HEADRACE_ALERT_SECRET,))
    headers = {"content-type": "application/json", **signature(webhook_id, text, destination, datetime.now(UTC))}
    with http_client.deadline(datetime.now(UTC) + timedelta(seconds=SEND_SECONDS)):
        try:
            with http_client.client("alerts").stream("POST", url, content=text.encode(), headers=headers) as response:
                status = response.status_code
        except httpx.HTTPError as error:
            raise NotSent(f"no answer from {url.host}: {type(error).__name__}: {error}") from None
    if not 200 <= status < 300:
        raise NotSent(f"{url.host} answered {status}")


def mail(webhook_id: str, title: str, text: str) -> None:
    """To every address of HEADRACE_ALERT_MAIL, in one message. Raises NotSent, or what the mail server's library raises."""
    told: Mapping[str, str] = json.loads(text)["data"]
    message = EmailMessage(
        subject=title,
        body=f"{told['reason']}\n\nAlert: {told['alert']} ({told['code']})\nInstallation: {told['installation']}\n",
        to=settings.HEADRACE_ALERT_MAIL,
        headers={"Message-ID": f"<{webhook_id}@headrace>", "Auto-Submitted": "auto-generated"},
    )
    if not message.send():
        raise NotSent("the mail server accepted no recipient")


def _execute(name: str, **values: object) -> int:
    return run_unit("alert", lambda: _sql.execute(name, **values), one_statement=True)
