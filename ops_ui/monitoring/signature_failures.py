"""How many deliveries failed their signature check lately, by endpoint: kept by the database, so that all web processes share it.

Most of them leave no row (nobody may fill the database with unsigned requests), so each process counts in memory, from its log
events, and tells the database every half minute. What a process has not told yet is lost with it: an alarm needs no exact number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from projection.database.catalogue import Sender
from projection.database.transactions import run_unit
from projection.logs import subscribe

WINDOW_MINUTES: Final = 10

_sql: Final = Sender(Path(__file__).parent)
_seen: Final[Counter[str]] = Counter()
_lock: Final = Lock()


def start() -> None:
    """Count from now on in this process."""
    subscribe(_count)


def _count(verb: str, fields: Mapping[str, Any], _rows: Sequence[Any]) -> None:
    if verb == "unverified" and "endpoint" in fields:
        with _lock:
            _seen[f"{fields.get('namespace')}/{fields['endpoint']}"] += 1


def tell() -> None:
    """Add what this process has counted. No statement where there was nothing; on an error it is told the next time."""
    with _lock:
        counted = dict(_seen)
    for endpoint, count in counted.items():
        add = partial(_sql.execute, "add_signature_failures", endpoint=endpoint, count=count)
        run_unit("signature_failures", add, one_statement=True)
        with _lock:
            _seen[endpoint] -= count
            if not _seen[endpoint]:
                del _seen[endpoint]
    if counted:
        run_unit("signature_failures", lambda: _sql.execute("prune_signature_failures"), one_statement=True)


def recent() -> list[tuple[str, int]]:
    """(namespace/endpoint, failures) of the last minutes, most first. One statement."""
    return [(str(endpoint), int(total)) for endpoint, total in _sql.fetch("read_signature_failures", minutes=WINDOW_MINUTES)]
