"""The zone in which a viewer reads times: a cookie that our own script sets (`zone.js`), UTC without one.

Times are converted here, from the system's or the package's zone files: no statement ever names a zone, so a database server without
time-zone tables serves every viewer. Django's own current zone stays UTC, because its date filters would ask the server to convert.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse

COOKIE: Final = "headrace_zone"
UTC_NAME: Final = "UTC"
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]{1,32}(?:/[A-Za-z0-9_+-]{1,32}){0,2}")
_SAME_AS_UTC: Final = frozenset(
    {"UTC", "Etc/UTC", "Etc/GMT", "GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal"}
)
_UTC: Final = ZoneInfo(UTC_NAME)
_current: Final[ContextVar[ZoneInfo]] = ContextVar("viewer_zone", default=_UTC)


def parse(name: str | None) -> ZoneInfo:
    """The zone of that name; UTC for no name, for another name of UTC, and for what is no zone."""
    if not name or name in _SAME_AS_UTC or not _NAME.fullmatch(name):
        return _UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # a folder of zones, a file that is none, a name that nobody knows
        return _UTC


def current() -> ZoneInfo:
    """The zone of the request that is answered; UTC outside of one."""
    return _current.get()


def label() -> str:
    """What stands beside times: `UTC`, or the place that names the zone (`Europe/Madrid` is `Madrid`), right in winter and summer."""
    return current().key.rpartition("/")[2].replace("_", " ")


class ViewerZone:
    """Middleware: the zone of the cookie holds for this request, and for no later one of its thread."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        before = _current.set(parse(request.COOKIES.get(COOKIE)))
        try:
            return self.get_response(request)
        finally:
            _current.reset(before)
