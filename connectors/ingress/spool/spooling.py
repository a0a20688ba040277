"""Spool: a verified delivery is kept on this host while the database is away, and answered 202.

Order: as long as something waits in this host's spool, a delivery of an endpoint that spools goes behind it, for at most
`BEHIND_SECONDS` at a time, so that what came during an outage is admitted before what comes after it. The order stays the order of
admission; a spooled receipt says when it arrived.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from connectors.delivery import Outcome, ReceiptDraft
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.spool import files
from connectors.ingress.spool.spooled import SpooledDelivery
from connectors.ingress.spool.writer import SpoolFull, SpoolWriter
from projection.logs import log_event

BEHIND_SECONDS: Final = 10.0
"""Longer than draining a full spool takes on an ordinary disk; then order is not worth a growing spool."""
SPOOLED: Final = "spooled"
FULL: Final = Outcome(
    "spool_full", 503, message="The delivery could neither be stored nor spooled; please send it again.", retry_after=60
)

_writer: Final = SpoolWriter()
_lock: Final = threading.Lock()
_behind_since: float | None = None


def spool(endpoint: EndpointFacts, draft: ReceiptDraft, arrived_us: int) -> Outcome:
    """Keep a delivery durably on this host: `spooled` (202), else `spool_full` (503). `draft` has an identity (`spooled.identified`).

    A repeated delivery is spooled again; the drain finds that it is a duplicate.
    """
    delivery = SpooledDelivery(arrived_us, endpoint.slug, endpoint.pack_name, draft)
    try:
        _writer.append(delivery.payload())
    except SpoolFull as full:
        log_event("spool", level="error", endpoint=endpoint.slug, pack=endpoint.pack_name, state=FULL.code, reason=str(full))
        return FULL
    log_event("spool", namespace=endpoint.namespace, endpoint=endpoint.slug, pack=endpoint.pack_name, state=SPOOLED)
    return Outcome(SPOOLED, 202)


def goes_behind() -> bool:
    """Whether a delivery should be spooled although the database may be there: others of before still wait."""
    global _behind_since  # noqa: PLW0603 - one answer for the threads of a process
    with _lock:
        now = time.monotonic()
        if files.is_empty():
            _behind_since = None
            return False
        if _behind_since is None:
            _behind_since = now
        return now - _behind_since < BEHIND_SECONDS


def database_failed() -> None:
    """The outage goes on: the time for going behind begins again."""
    global _behind_since  # noqa: PLW0603 - as above
    with _lock:
        _behind_since = None


def forget() -> None:
    """As in a new process (tests)."""
    database_failed()
    _writer.close()
