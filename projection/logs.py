"""The one place that turns verbs into log lines: one structured event per verb, the same field names everywhere. Who counts verbs
subscribes here (`ops_ui/monitoring/measures.py`), so that the engine knows nothing of metrics.

Lines go to standard error: JSON (one object a line) unless it is a terminal, or as `configure` says. A line carries ids, counts,
states and times, never a payload, a header value or a secret: a field of such a name is hidden, whoever passes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal, TextIO, get_args

import structlog

Level = Literal["debug", "info", "warning", "error"]
Form = Literal["json", "text"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""From the least important on."""

FIELDS: Final = (
    "namespace",
    "pack",
    "endpoint",
    "receipt_id",
    "event_id",
    "route",
    "route_version",
    "flow",
    "work_id",
    "projection_key",
    "replay_of_work_id",
    "state",
    "attempt",
    "lane",
    "account",
    "source",
    "sources",
    "count",
    "seconds",
    "reason",
    "error",
    "frames",
    "actor",
    "worker",
    "destination",
    "job_id",
    "erasure_id",
    "kind",
    "target",
    "until",
    "unit",
    "error_code",
    "task",
    "alert",
    "channel",
    "receipts",
    "events",
    "duplicates",
    "conflicts",
    "rejected",
    "first_ordinal",
    "last_ordinal",
    "payload_characters",
    "activated",
    "unblocked",
    "done",
    "refused",
    "deferred",
    "counts",
    "outcomes",
    "stages",
)
"""The field names of log events, in the order in which a line shows them. A test lets no event use another name."""


class _Places(dict[str, int]):
    """Where each field stands in a line; all others follow, as they were given."""

    def __missing__(self, name: str) -> int:
        return len(self)


_PLACES: Final = _Places({name: place for place, name in enumerate(("timestamp", "level", "event", *FIELDS))})

HIDDEN_FIELDS: Final = frozenset(
    {
        "authorization",
        "body",
        "cookie",
        "headers",
        "password",
        "payload",
        "properties",
        "secret",
        "secrets",
        "signature",
        "token",
        "url",
        "value",
    }
)
HIDDEN: Final = "[hidden]"
LONGEST_TEXT: Final = 2_000
"""Characters of one text field: long enough for an error, too short to flood a log."""


def _redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name in HIDDEN_FIELDS.intersection(event):
        event[name] = HIDDEN
    for name, value in event.items():
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            event[name] = f"{value[:LONGEST_TEXT]}… ({len(value)} characters)"
    return event


def _order(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {name: event[name] for name in sorted(event, key=_PLACES.__getitem__) if event[name] is not None}


_line: Final = json.JSONEncoder(default=str).encode


@dataclass(slots=True)
class _Choice:
    """`level`: events below it are not written. `form`: None = readable text on a terminal, JSON anywhere else."""

    level: Level = "info"
    form: Form | None = None


_choice: Final = _Choice()


def configure(level: Level = "info", form: Form | None = None) -> None:
    """What HEADRACE_LOG_LEVEL and HEADRACE_LOG_FORMAT say, for this process."""
    _choice.level, _choice.form = level, form


def is_readable() -> bool:
    """Whether a line is written for people. Asked per line: standard error may become a file after this module was imported."""
    return sys.stderr.isatty() if _choice.form is None else _choice.form == "text"


def _render(logger: object, method: str, event: MutableMapping[str, Any]) -> str:
    if is_readable():
        return str(structlog.dev.ConsoleRenderer(sort_keys=False)(logger, method, event))
    return _line(event)


_PROCESSORS: Final[Sequence[Callable[..., MutableMapping[str, Any]]]] = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    _redact,
    _order,
)


def _write(level: Level, verb: str, fields: Mapping[str, object]) -> None:
    """One whole line, to whatever standard error is now (a test or a supervisor may have replaced it).

    The processors are called here, and not by one of structlog's loggers: a delivery is one INSERT and one line, and nothing is bound.
    """
    event: MutableMapping[str, Any] = {"event": verb, **fields}
    for process in _PROCESSORS:
        event = process(None, level, event)
    stream: TextIO = sys.stderr
    stream.write(_render(None, level, event) + "\n")
    stream.flush()


def line(level: str, event: MutableMapping[str, Any]) -> str:
    """One line of the common form, for what is no log event of ours (`runtime/library_log.py`): hidden and ordered as theirs."""
    return _render(None, level, _order(None, level, _redact(None, level, event)))


_quiet: Final = ContextVar("quiet", default=False)

Subscriber = Callable[[str, Mapping[str, object], Sequence[Any]], None]
_subscribers: Final[list[Subscriber]] = []


def subscribe(subscriber: Subscriber) -> None:
    """Tell `subscriber` of every log event of this process: its verb, its fields, and the rows that it is about. Once, at the start.

    It runs in the thread and at the moment of the event, so it only counts. What it raises is logged, and changes nothing.
    """
    if subscriber not in _subscribers:
        _subscribers.append(subscriber)


def log_event(verb: str, *, level: Level = "info", rows: Sequence[Any] = (), **fields: object) -> None:
    """Write one log event, e.g. `log_event("complete", work_id=…, state="processed", attempt=1)`.

    `verb` is one of the product's verbs (receive, route, admit, claim …) or a past tense of something that happened
    (`lease_lost`). Fields that are None are left out. Use the names of `FIELDS`; never pass payload values. `rows` are what the event
    sums up, for those who measure (`subscribe`); they are not written.
    """
    for subscriber in _subscribers:
        try:
            subscriber(verb, fields, rows)
        except Exception as error:  # noqa: BLE001 - a number that cannot be counted stops nothing else
            _write("error", "measure", {"reason": verb, "error": f"{type(error).__name__}: {error}"})
    if LEVELS.index(level) >= LEVELS.index("warning" if _quiet.get() and _choice.level != "error" else _choice.level):
        _write(level, verb, fields)


@contextmanager
def quietly() -> Iterator[None]:
    """Inside, only warnings and errors are written: for work that is summed up in one line afterwards."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)
