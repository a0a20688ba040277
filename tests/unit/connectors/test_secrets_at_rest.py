"""Secrets at rest: the first key encrypts, every key decrypts, and an expiry ends one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet

from connectors import secrets

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def entry(secret: str, ends: datetime | None = None) -> dict[str, str | None]:
    return {"secret": secret, "expires_at": ends.isoformat() if ends else None}


def test_what_is_stored_is_not_readable_and_comes_back_whole() -> None:
    text = secrets.encrypt([entry("gehe\u00efm 💥")])
    assert "gehe" not in text
    assert secrets.decrypt(text) == [entry("gehe\u00efm 💥")]
    assert secrets.decrypt("") == []


def test_an_expired_secret_does_not_count() -> None:
    text = secrets.encrypt([entry("now"), entry("later", NOW + timedelta(seconds=1)), entry("over", NOW)])
    assert secrets.live(text, NOW) == ["now", "later"]


def test_an_expiry_without_a_zone_is_utc() -> None:
    text = secrets.encrypt([{"secret": "x", "expires_at": "2026-01-01T00:00:01"}])
    assert secrets.live(text, NOW) == ["x"]


def test_a_new_first_key_takes_over_by_rewrap(settings: Any) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    settings.HEADRACE_ENCRYPTION_KEYS = [old]
    text = secrets.encrypt([entry("x")])
    settings.HEADRACE_ENCRYPTION_KEYS = [new, old]
    assert secrets.live(text, NOW) == ["x"]
    again = secrets.rewrap(text)
    settings.HEADRACE_ENCRYPTION_KEYS = [new]
    assert secrets.live(again, NOW) == ["x"]
    with pytest.raises(secrets.SecretsUnreadable, match="HEADRACE_ENCRYPTION_KEYS"):
        secrets.decrypt(text)
    with pytest.raises(secrets.SecretsUnreadable):
        secrets.rewrap(text)
    assert secrets.rewrap("") == ""


@pytest.mark.parametrize("keys", [[], ["not a key"]])
def test_without_a_key_nothing_is_encrypted(settings: Any, keys: list[str]) -> None:
    settings.HEADRACE_ENCRYPTION_KEYS = keys
    with pytest.raises(secrets.NoEncryptionKey, match="HEADRACE_ENCRYPTION_KEYS"):
        secrets.encrypt([entry("x")])


@pytest.mark.parametrize("text", ["garbage", "gAAAA", "é"])
def test_a_damaged_value_is_unreadable_not_fatal(text: str) -> None:
    with pytest.raises(secrets.SecretsUnreadable):
        secrets.decrypt(text)


def test_kept_secrets_end_at_their_stated_moment() -> None:
    now = NOW
    text = secrets.encrypt(
        [
            {"secret": "new", "expires_at": None},
            {"secret": "old", "expires_at": (now + timedelta(seconds=2)).isoformat()},
            {"secret": "without a zone", "expires_at": "2026-01-01T00:00:01"},
        ]
    )
    kept = secrets.kept(text)
    assert "old" not in repr(kept)
    assert kept.at(now) == ("new", "old", "without a zone")
    assert kept.at(now + timedelta(seconds=1)) == ("new", "old")
    assert kept.at(now + timedelta(seconds=2)) == ("new",)
