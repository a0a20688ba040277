"""What was last known of endpoints that spool, for the time while the database is away: else nothing could be verified.

A file of this host (`endpoints.json` in the spool's folder, secrets encrypted as in the database), written once a minute, so that a
web process that was just started knows the endpoints too. Facts older than a day count as unknown.
"""

from __future__ import annotations

import json
import os
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from django.db import Error

from connectors.ingress import endpoint_facts
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.outage import INGRESS
from connectors.ingress.spool import files
from projection.database.catalogue import Sender

_sql: Final = Sender(Path(__file__).parent, INGRESS)

LONGEST_SECONDS: Final = 86_400
"""A secret that was taken out of force just before the database went away is accepted for at most this long."""
MOST_ENDPOINTS: Final = 1000
FILE: Final = "endpoints.json"


def find(name: tuple[str, str]) -> EndpointFacts | None:
    """As `endpoint_facts.find`; while the database is away what was last known of an endpoint that spools. Raises the database's error."""
    try:
        return endpoint_facts.find(name)
    except Error:
        known = last_known(name)
        if known is None or not known.spools:
            raise
        return known


def last_known(name: tuple[str, str]) -> EndpointFacts | None:
    """The newest facts of this process or this host, however long ago they were read. None: unknown, or too old."""
    kept = endpoint_facts.find.last(name)
    own_age, own = kept if kept is not None and kept[1] is not None else (float(LONGEST_SECONDS), None)
    at, rows = _read_file()
    file_age = max(0.0, time.time() - at)
    row = rows.get(name)
    if row is not None and file_age < min(own_age, LONGEST_SECONDS):
        return endpoint_facts.facts_of(row)
    if own is None or own_age >= LONGEST_SECONDS:
        return None
    return own


def write() -> int:
    """Write what is known now of every open endpoint that spools; how many. One query. Raises the database's error, or OSError."""
    rows = [row for row in _sql.fetch("read_open_endpoints", most=MOST_ENDPOINTS) if endpoint_facts.facts_of(row).spools]
    place = files.folder()
    if not rows and not (place / FILE).exists():
        return 0
    files.make_folder(place)
    draft = place / f".{FILE}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump({"at": time.time(), "rows": rows}, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(place / FILE)
    return len(rows)


def _read_file() -> tuple[float, dict[tuple[str, str], tuple[Any, ...]]]:
    """When the file was written, and its rows by name; (0.0, {}) without a readable file."""
    path = files.folder() / FILE
    try:
        facts = path.stat()
        return _parsed(path, facts.st_ino, facts.st_mtime_ns)
    except (OSError, ValueError, LookupError, TypeError):
        return 0.0, {}


@lru_cache(maxsize=1)
def _parsed(path: Path, _inode: int, _written_ns: int) -> tuple[float, dict[tuple[str, str], tuple[Any, ...]]]:
    members = json.loads(path.read_text(encoding="utf-8"))
    whole = [tuple(row) for row in members["rows"] if len(row) == endpoint_facts.COLUMNS]  # others are of another version
    return float(members["at"]), {(row[1], row[2]): row for row in whole}
