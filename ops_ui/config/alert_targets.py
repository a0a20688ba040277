"""Settings that say whom alerts are told: a webhook, mail addresses, and the server that takes the mail."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from email.utils import parseaddr
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit


def webhook_url(raw: str) -> str:
    """As the URL of a connection; its path and query may be a secret of their own. Raises ValueError."""
    try:
        parts = urlsplit(raw)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or parts.fragment or parts.username is not None:
        raise ValueError("must be an http or https URL without user name, such as https://alerts.example.com/headrace")
    return raw


def webhook_secret(raw: str) -> str:
    """As Standard Webhooks writes it. Raises ValueError."""
    try:
        usable = bool(base64.b64decode(raw.removeprefix("whsec_"), validate=True))
    except (binascii.Error, ValueError):
        usable = False
    if not usable:
        raise ValueError("must be base64, with or without whsec_ in front")
    return raw


def addresses(raw: str) -> list[str]:
    """Plain mail addresses, apart by spaces or commas. Raises ValueError."""
    found = raw.replace(",", " ").split()
    for address in found:
        if parseaddr(address)[1] != address or address.count("@") != 1 or address.startswith("@") or address.endswith("@"):
            raise ValueError(f"must be mail addresses; {address!r} is not one")
    return found


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail is handed over. `security` is `starttls`, `tls` (from the first byte) or `none`."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    security: str
    sender: str


MAIL_PORTS: Final = {"smtp": 587, "smtps": 465}


def mail_server(raw: str) -> MailServer:
    """A mail server as a URL; a password never goes out in the clear. Raises ValueError."""
    try:
        parts = urlsplit(raw)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        port = parts.port or MAIL_PORTS[parts.scheme]
        sender = addresses(query.pop("from"))[0]
        without_tls = query.pop("tls", None)
        usable = bool(parts.hostname) and parts.path in ("", "/") and not query and without_tls in (None, "off")
    except (ValueError, KeyError, IndexError):
        usable = False
    if not usable or (without_tls and (parts.scheme == "smtps" or parts.password)):
        raise ValueError(
            "must be smtp://USER:PASSWORD@HOST:587?from=ADDRESS (STARTTLS; without it, and without a password: &tls=off) or smtps://…"
        )
    security = "none" if without_tls else "starttls" if parts.scheme == "smtp" else "tls"
    return MailServer(str(parts.hostname), port, unquote(parts.username or ""), unquote(parts.password or ""), security, sender)
