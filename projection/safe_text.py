"""Texts of foreign code and of people, made fit to be stored: escaped, bounded, grouped by cause."""

from __future__ import annotations

import hashlib
import re
from typing import Final

ERROR_TEXT_BYTES: Final = 8 * 1024
CUT_MARK: Final = " … [cut]"
ACTOR_CHARACTERS: Final = 150
"""The width of the columns that keep an operator's name, and of a user's name in Django."""


def error_text(error: BaseException) -> str:
    """Name and text of any exception, always storable: escaped, cut at 8 KiB with a mark, also when its own `__str__` raises."""
    message = message_of(error)
    return storable(f"{type(error).__name__}: {message}" if message else type(error).__name__)


def message_of(error: BaseException) -> str:
    """The text of any exception alone, storable; never raises."""
    try:
        return storable(str(error))
    except Exception as broken:  # noqa: BLE001 - an exception's text is foreign code
        return f"(its text cannot be read: {type(broken).__name__})"


def with_reason(text: str, reason: str) -> str:
    """`text (reason)`, storable; where both are too long the text is cut, so that the reason is always seen."""
    tail = f" ({reason})"
    return storable(text, room=ERROR_TEXT_BYTES - len(tail.encode("utf-8", "backslashreplace"))) + tail


def storable(text: str, *, room: int = ERROR_TEXT_BYTES) -> str:
    """Any text made fit for a column: lone surrogates and control characters escaped, at most `room` bytes (8 KiB) of UTF-8."""
    if text.isascii() and text.isprintable() and len(text) <= room:
        return text
    head = text[: room + 1]
    escaped = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", lambda hit: f"\\x{ord(hit[0]):02x}", head)
    raw = escaped.encode("utf-8", "backslashreplace")
    if len(raw) <= room and len(head) == len(text):
        return raw.decode("utf-8")
    return raw[: room - len(CUT_MARK.encode())].decode("utf-8", "ignore") + CUT_MARK


def storable_actor(actor: str) -> str:
    """The name of an operator, whatever it is: what cannot be stored is escaped, what is too long is cut."""
    return storable(actor)[:ACTOR_CHARACTERS]


def fingerprint(text: str) -> str:
    """Groups failures of one cause: the first line with numbers and quoted values taken out, hashed."""
    first = text.split("\n", 1)[0]
    return hashlib.sha256(re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "#", first).encode()).hexdigest()
