"""What becomes of a stored alert is a function of what is stored, what is now, and the time; and where alerts are told, of settings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ops_ui.config import alert_targets
from ops_ui.config.alert_targets import MailServer
from ops_ui.config.environment import BadSetting, read
from ops_ui.monitoring.alerts import RECOVERED_AFTER, Cause, Change, Known, decide

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
CAUSE = Cause("no_worker", "…")
JUST_CLEAR = NOW - RECOVERED_AFTER + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("raised", "clear_since", "cause", "change"),
    [
        (False, None, None, Change.NONE),
        (False, None, CAUSE, Change.RAISE),
        (True, None, CAUSE, Change.NONE),
        (True, None, None, Change.CLEAR),
        (True, JUST_CLEAR, None, Change.NONE),
        (True, NOW - RECOVERED_AFTER, None, Change.RECOVER),
        (True, JUST_CLEAR, CAUSE, Change.AGAIN),
        (True, NOW - RECOVERED_AFTER, CAUSE, Change.AGAIN),
    ],
)
def test_every_case(raised: bool, clear_since: datetime | None, cause: Cause | None, change: Change) -> None:
    assert decide(Known("age", raised, 7, clear_since, NOW - timedelta(hours=1)), cause, NOW) is change


@pytest.mark.parametrize(
    ("raw", "server"),
    [
        ("smtp://mail.example.com?from=h@example.com", MailServer("mail.example.com", 587, "", "", "starttls", "h@example.com")),
        ("smtps://u%40x:p%2Fw@m.example:2465/?from=h@x.example", MailServer("m.example", 2465, "u@x", "p/w", "tls", "h@x.example")),
        ("smtp://localhost:25?tls=off&from=h@example.com", MailServer("localhost", 25, "", "", "none", "h@example.com")),
    ],
)
def test_a_mail_server_is_a_url(raw: str, server: MailServer) -> None:
    assert alert_targets.mail_server(raw) == server
    assert "p/w" not in repr(server)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("MAIL_URL", "mail.example.com"),
        ("MAIL_URL", "smtp://mail.example.com"),
        ("MAIL_URL", "smtp://mail.example.com?from=nobody"),
        ("MAIL_URL", "smtp://user:secret@mail.example.com?from=h@example.com&tls=off"),
        ("MAIL_URL", "smtps://mail.example.com?from=h@example.com&tls=off"),
        ("MAIL_URL", "smtp://mail.example.com?from=h@example.com&tls=on"),
        ("MAIL_URL", "smtp://mail.example.com?from=h@example.com&x=1"),
        ("MAIL_URL", "smtp://mail.example.com:0x1?from=h@example.com"),
        ("MAIL_URL", "http://mail.example.com?from=h@example.com"),
        ("ALERT_MAIL", "op@example.com, nobody"),
        ("ALERT_MAIL", "Op<op@example.com>"),
        ("ALERT_URL", "alerts.example.com"),
        ("ALERT_URL", "https://user@alerts.example.com/"),
        ("ALERT_URL", "https://alerts.example.com:99999/"),
        ("ALERT_SECRET", "whsec_???"),
        ("ALERT_SECRET", "whsec_"),
        ("ALERT_DEAD_LETTERS", "0"),
        ("AGE_LIMIT_SECONDS", "15m"),
    ],
)
def test_a_bad_value_is_refused_by_name_and_without_its_secrets(name: str, raw: str) -> None:
    with pytest.raises(BadSetting, match=f"HEADRACE_{name}") as refused:
        read({f"HEADRACE_{name}": raw})
    assert "secret" not in str(refused.value).replace("HEADRACE_ALERT_SECRET", "")
