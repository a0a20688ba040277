"""Secrets at rest: a Fernet token per column, under HEADRACE_ENCRYPTION_KEYS (the first key encrypts, every key decrypts).

A stored value is a list of `{"secret": str, "expires_at": ISO 8601 text or None}`. The keys are apart from SECRET_KEY, so that a
leaked session key opens no provider secret.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

MAX_LIVE: Final = 2
"""Secrets of one endpoint that are live at once: the one in use and its successor during a rotation."""


class SecretsUnreadable(RuntimeError):
    """No key of HEADRACE_ENCRYPTION_KEYS opens a stored secret: put the key that encrypted it back, or set the secret again."""


class NoEncryptionKey(RuntimeError):
    """HEADRACE_ENCRYPTION_KEYS is empty or holds no Fernet key (32 bytes, URL-safe base64); script/server makes one."""


def _box() -> MultiFernet:
    keys = settings.HEADRACE_ENCRYPTION_KEYS
    if not keys:
        raise NoEncryptionKey(str(NoEncryptionKey.__doc__))
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        raise NoEncryptionKey(str(NoEncryptionKey.__doc__)) from None


def encrypt(values: Sequence[dict[str, Any]]) -> str:
    """The column text of these secrets. Raises NoEncryptionKey."""
    return _box().encrypt(json.dumps(list(values), ensure_ascii=False).encode("utf-8", "surrogatepass")).decode("ascii")


def decrypt(text: str) -> list[dict[str, Any]]:
    """The secrets of a column text, expired ones included; an empty text holds none. Raises SecretsUnreadable."""
    if not text:
        return []
    try:
        values: list[dict[str, Any]] = json.loads(_box().decrypt(text.encode("utf-8", "replace")).decode("utf-8", "surrogatepass"))
    except InvalidToken:
        raise SecretsUnreadable(str(SecretsUnreadable.__doc__)) from None
    return values


def live(text: str, now: datetime) -> list[str]:
    """The secrets that count at `now` (aware UTC): those without an expiry or with a later one, in stored order."""
    return [entry["secret"] for entry in decrypt(text) if is_live(entry, now)]


@dataclass(frozen=True, slots=True)
class Kept:
    """Secrets as a cache keeps them: with their ends, so that each ends when it is said to, not when the cache reads again."""

    entries: tuple[tuple[str, datetime | None], ...] = field(repr=False)
    """(secret, its end), in stored order."""

    def at(self, now: datetime) -> tuple[str, ...]:
        """Those that count at `now` (aware)."""
        return tuple(secret for secret, ends in self.entries if ends is None or ends > now)


def kept(text: str) -> Kept:
    """All secrets of a column text. Raises SecretsUnreadable."""
    return Kept(tuple((entry["secret"], end_of(entry)) for entry in decrypt(text)))


def end_of(entry: dict[str, Any]) -> datetime | None:
    """When an entry ends; None: it does not. An expiry without a zone is UTC."""
    expires = entry.get("expires_at")
    if not expires:
        return None
    at = datetime.fromisoformat(expires)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def is_live(entry: dict[str, Any], now: datetime) -> bool:
    """Whether one entry counts at `now`."""
    ends = end_of(entry)
    return ends is None or ends > now


def rewrap(text: str) -> str:
    """The same secrets under the first key (after a new key was put in front). Empty stays empty. Raises SecretsUnreadable."""
    if not text:
        return text
    try:
        return _box().rotate(text.encode("utf-8", "replace")).decode("ascii")
    except InvalidToken:
        raise SecretsUnreadable(str(SecretsUnreadable.__doc__)) from None
