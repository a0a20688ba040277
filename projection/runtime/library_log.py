"""What Django, django-q2, gunicorn and other libraries log, as lines of the same form as our own (`logs.py`)."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, Final

from projection.database.outages import is_outage
from projection.logs import LONGEST_TEXT, is_readable, line

REFUSED_REQUESTS: Final = "django.security."
LONGEST_REFUSAL: Final = 300
"""Characters: it quotes what the stranger sent."""


class LibraryLine(logging.Formatter):
    """Django's, django-q2's and other libraries' records as lines of the same form: event `log`, the logger, its text, and the
    end of the traceback (on a terminal all of it).

    While the database is away libraries report it again and again, from the same places: of that only the error's own sentence is written.
    Of a request that Django refuses for its form (an unknown Host, too many fields) too: a stranger can send any number of them.
    """

    def format(self, record: logging.LogRecord) -> str:
        if record.name.startswith(REFUSED_REQUESTS):
            record.msg, record.args = f"{record.getMessage():.{LONGEST_REFUSAL}}", ()
            record.exc_info = record.exc_text = None
        if record.exc_info and is_outage(record.exc_info[1]):
            record.msg, record.args = f"{record.getMessage()} ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})", ()
            record.exc_info = record.exc_text = None
        level = record.levelname.lower()
        event: dict[str, Any] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "level": level,
            "event": "log",
            "logger": record.name,
            "text": record.getMessage(),
        }
        if not record.exc_info:
            return line(level, event)
        error = self.formatException(record.exc_info)
        return f"{line(level, event)}\n{error}" if is_readable() else line(level, event | {"error": error[-LONGEST_TEXT:]})
