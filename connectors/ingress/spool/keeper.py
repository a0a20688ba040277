"""The keeper of this host's spool: a thread of each web process; one of them at a time drains, and writes what is known of endpoints.

The web server writes the spool, so wherever there is one there is a keeper. What is left when the web server is stopped for good is
drained by `script/manage spool drain`.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import Final

from django.db import connections

from connectors.ingress.outage import INGRESS
from connectors.ingress.spool import drain, files, last_known
from connectors.ingress.spool.drain import Drain
from projection.logs import log_event
from projection.safe_text import error_text

LOOK_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 5.0
"""While the database is away."""
KNOWN_SECONDS: Final = 60.0
"""How old `endpoints.json` is at most while the database is there."""


class Keeper:
    """What the thread does; tests call `look` themselves."""

    def __init__(self) -> None:
        self._drain = Drain()
        self._known_at: float | None = None

    def look(self) -> None:
        """Drain what waits, and write the endpoints down when it is time. Raises what goes wrong; nothing is lost by it."""
        try:
            if not files.is_empty():
                self._drain.run()
            if self._known_at is None or monotonic() - self._known_at >= KNOWN_SECONDS:
                last_known.write()
                self._known_at = monotonic()
        finally:
            connections[INGRESS].close()


def start() -> None:
    """Start the thread of this process; once, after the fork."""
    threading.Thread(target=_keep, name="spool-keeper", daemon=True).start()


def _keep() -> None:
    pause = threading.Event()
    while True:
        try:
            with drain.alone() as ours:
                if ours:
                    _look_again_and_again(pause)
        except OSError as error:
            log_event("spool", level="error", reason="the spool's folder cannot be used", error=error_text(error))
        pause.wait(LONGEST_PAUSE_SECONDS)


def _look_again_and_again(pause: threading.Event) -> None:
    keeper, failures = Keeper(), 0
    while True:
        try:
            keeper.look()
            failures = 0
        except Exception as error:  # noqa: BLE001 - the keeper outlives any single fault; it says so and tries again
            failures += 1
            log_event("spool", level="warning", reason="waiting for the database", error=error_text(error))
        pause.wait(min(LONGEST_PAUSE_SECONDS, LOOK_SECONDS * 2.0 ** min(failures, 10)))
