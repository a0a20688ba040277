"""A stored filter in words, and as the query of the list that shows the same dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from connectors.operations.work_filters import WorkFilter

NAMES: Final = {
    "route": "Route",
    "pack": "Pack",
    "flow": "Flow",
    "source": "Source",
    "account": "Account",
    "error": "Error contains",
    "fingerprint": "Error fingerprint",
    "since": "Failed after",
    "until": "Failed before",
}


def members(chosen: WorkFilter) -> list[tuple[str, Any]]:
    """(name, value) of what it selects by; times as they are."""
    return [(title, getattr(chosen, name)) for name, title in NAMES.items() if getattr(chosen, name)]


def query(chosen: WorkFilter) -> str:
    """The list's query. A time keeps its microseconds."""
    values = {name: getattr(chosen, name) for name in NAMES if name != "flow" and getattr(chosen, name)}
    texts = {name: _iso(value) if isinstance(value, datetime) else str(value) for name, value in values.items()}
    return urlencode(texts | ({} if chosen.unreplayed else {"show": "all"}))


def _iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
