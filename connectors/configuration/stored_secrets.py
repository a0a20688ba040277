"""Changes of a stored list of secrets: which are valid, until when, and where each came from. Values never leave this module.

A stored entry is `{"secret", "expires_at", "reference"}`: an entry without expiry is in force until it is replaced; `reference`
is where configuration found it (`env:NAME`, `file:/path`; empty = typed in), so that `config export` can name it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from secrets import token_bytes
from typing import Any, Final

from connectors import secrets
from connectors.configuration.change import ConfigurationRefused
from connectors.configuration.file import resolve

PLAIN: Final = "plain:"


class SecretRefused(ConfigurationRefused):
    """A secret cannot be used; the message says what is wrong, without its value."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret and where it was found; its text never shows in a log or traceback."""

    value: str
    reference: str = ""

    def __repr__(self) -> str:
        return f"Secret(reference={self.reference!r})"


def from_reference(reference: str, where: str) -> Secret:
    """The secret behind `env:NAME`, `file:/path` or `plain:VALUE`; `where` starts the sentence. Raises SecretRefused."""
    try:
        return Secret(resolve(reference), "" if reference.startswith(PLAIN) else reference)
    except ValueError as error:
        raise SecretRefused(f"{where}: {error}") from None


def generated() -> Secret:
    """A fresh random secret that every scheme takes: the Standard Webhooks form, `whsec_` and 32 bytes in base64."""
    return Secret("whsec_" + base64.b64encode(token_bytes(32)).decode("ascii"))


def in_force(text: str) -> list[Secret]:
    """The stored secrets that have no end, in order."""
    return [Secret(entry["secret"], entry.get("reference", "")) for entry in secrets.decrypt(text) if not entry.get("expires_at")]


def stored(values: Sequence[Secret]) -> str:
    """Column text of secrets that are all in force."""
    return secrets.encrypt([_entry(value, None) for value in values])


def replaced(text: str, values: Sequence[Secret]) -> str:
    """Column text once `values` alone are in force.

    `text` itself when they are in force already, so that the overlap of a rotation goes on; otherwise whatever else was stored
    stops at once: what configuration lists is what counts.
    """
    return text if in_force(text) == list(values) else stored(values)


def rotated(text: str, new: Secret, now: datetime, ends: datetime) -> tuple[str, int]:
    """Column text with `new` in force and the one before it live until `ends`, and how many older live ones stop at once.

    At most two are live. Raises SecretRefused when `new` is the one in force.
    """
    entries = [entry for entry in secrets.decrypt(text) if secrets.is_live(entry, now)]
    permanent = [entry for entry in entries if not entry.get("expires_at")]
    if any(entry["secret"] == new.value for entry in permanent):
        raise SecretRefused("the new secret is already active; nothing to rotate")
    predecessor = permanent[:1]
    kept = [{**entry, "expires_at": ends.isoformat()} for entry in predecessor] if ends > now else []
    dropped = [entry for entry in entries if entry not in predecessor and entry["secret"] != new.value]
    return secrets.encrypt([_entry(new, None), *kept]), len(dropped)


def _entry(value: Secret, expires_at: str | None) -> dict[str, Any]:
    return {"secret": value.value, "expires_at": expires_at, "reference": value.reference}


@dataclass(frozen=True, slots=True)
class LiveSecret:
    """What people may know about a live secret: where it was found (empty: typed in or made here), and when it ends."""

    reference: str
    ends_at: datetime | None


def live(text: str, now: datetime) -> list[LiveSecret]:
    """The secrets that count at `now`, the newest first, without their values. Raises SecretsUnreadable, NoEncryptionKey."""
    entries = [entry for entry in secrets.decrypt(text) if secrets.is_live(entry, now)]
    return [LiveSecret(entry.get("reference") or "", secrets.end_of(entry)) for entry in entries]
