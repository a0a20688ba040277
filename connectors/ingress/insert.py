"""The INSERT of a receipt: once, whatever the database makes of the first try.

Joins the caller's transaction, or is one of its own. The unique key decides about duplicates, so a receipt with an identity may be
inserted again whenever it is not known whether it was.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Final

from django.db import Error, connections
from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_random_exponential

from connectors.delivery import Outcome, ReceiptDraft
from connectors.ingress.body_memory import SMALL_BYTES
from connectors.managers import ReceiptManager
from connectors.models import Receipt
from projection.database.outages import is_connection_lost
from projection.database.transactions import error_code, is_conflict, noting
from projection.logs import log_event
from projection.safe_text import error_text
from projection.states import ReceiptState

INSERT_ROUNDS: Final = 3
"""A first receipt that is pruned between our INSERT and our read is a coincidence; three in a row are none."""
LONGEST_RETRY_SECONDS: Final = 1.5
"""What fails at once is tried again; after one that took a whole lock wait the provider would not wait any longer."""
TOO_LARGE_CODES: Final = frozenset(
    {
        1118,  # a row that the redo log has no place for
        1153,  # above max_allowed_packet
        8025,  # TiDB: above txn-entry-size-limit
    }
)
ESCAPED: Final = b"\0\n\r\x1a\"'\\"
"""Bytes that the driver writes as two."""
LONGEST_REST_BYTES: Final = 4096
"""Of the statement, without body, headers and URL."""


def insert_by_all_means(draft: ReceiptDraft, using: str) -> Outcome:
    """As `insert_draft`, again where the first try failed at once: on a fresh connection, or a few times on a conflict.

    The first try goes without what nearly never is needed: the machinery of trying again and, for a receipt with an identity, Django's
    question whether the connection still works. Together they cost as much as making up the receipt.
    """
    since = time.monotonic()
    try:
        return _first_try(draft, using)
    except Error as error:
        if not is_conflict(error) or time.monotonic() - since >= LONGEST_RETRY_SECONDS:
            raise
        log_event("conflict", unit="receive", attempt=1, error_code=error_code(error))
    retrying = Retrying(
        stop=stop_after_attempt(3) | stop_after_delay(LONGEST_RETRY_SECONDS),
        wait=wait_random_exponential(multiplier=0.02, max=0.2),
        retry=retry_if_exception(is_conflict),
        before_sleep=noting("receive"),
        reraise=True,
    )
    return retrying(insert_draft, draft, using)


def is_too_large(draft: ReceiptDraft, error: Error, using: str) -> bool:
    """Whether the server took no receipt of this size, and will not at another time. Many servers just drop the connection; these are
    asked, by one query on a fresh one."""
    if error_code(error) in TOO_LARGE_CODES:
        return True
    if len(draft.body) <= SMALL_BYTES or not is_connection_lost(error):
        return False
    escaped = 2 * len(draft.body) - len(draft.body.translate(None, ESCAPED))
    try:
        connections[using].close()
        with connections[using].cursor() as cursor:
            cursor.execute("SELECT @@max_allowed_packet")
            return bool(escaped + len(draft.headers) + len(draft.url) + LONGEST_REST_BYTES > cursor.fetchone()[0])
    except Error:
        return False


def _first_try(draft: ReceiptDraft, using: str) -> Outcome:
    """On the connection as it is; if it turns out to be lost, once more on a fresh one. Without an identity nothing may be sent twice
    in doubt, so the connection is asked first (CONN_HEALTH_CHECKS)."""
    if draft.idempotency_hash is None:
        return insert_draft(draft, using)
    connection, since = connections[using], time.monotonic()
    connection.health_check_done = True  # type: ignore[attr-defined]  # Django has it, its stubs do not
    try:
        return insert_draft(draft, using)
    except Error as error:
        if not is_connection_lost(error) or time.monotonic() - since >= LONGEST_RETRY_SECONDS:
            raise
        log_event("conflict", unit="receive", attempt=1, error_code=error_code(error), error=error_text(error))
    connection.close()
    return insert_draft(draft, using)


def insert_draft(draft: ReceiptDraft, using: str) -> Outcome:
    """Insert a receipt on the connection of this alias, or find the one that stands for it. Raises the database's error."""
    receipts = _receipts(using)
    for _ in range(INSERT_ROUNDS):
        receipt_id = receipts.insert_receipt(draft)
        if receipt_id is not None:
            return Outcome("accepted", 202, receipt_id)
        first = receipts.read_first_receipt(draft.endpoint_id, str(draft.idempotency_hash))
        if first is not None:
            return _repeated(draft, first, using)
    raise Error("a receipt with this delivery id appears and disappears; check whether another process deletes receipts")


@cache
def _receipts(using: str) -> ReceiptManager:
    """The receipts by the connection of this alias; made once, not for each delivery."""
    return Receipt.objects.db_manager(using)


def _repeated(draft: ReceiptDraft, first: tuple[int, str, int | None, str | None], using: str) -> Outcome:
    first_id, first_sha256, erasure_id, rejected_by = first
    if first_sha256 == draft.body_sha256:
        return Outcome("duplicate", 200, first_id, rejected_by=rejected_by)
    # Kept once per body; the first stands, and every further copy is answered the same.
    receipts = _receipts(using)
    other = replace(draft, conflict_hash=draft.body_sha256, state=ReceiptState.CONFLICT.value)
    if erasure_id is not None:  # what was erased does not come back under another body
        receipts.insert_receipt(replace(other, body=b"", headers="{}", url=""), erasure_id)
    elif receipts.insert_receipt(other) is not None:
        now = receipts.read_first_receipt(draft.endpoint_id, str(draft.idempotency_hash))
        if now is not None and now[2] is not None:  # erased since we looked: the erasure may have looked before we inserted
            receipts.forget_conflict(other, now[2])
    message = "This delivery id was already received with a different body; the first one is kept."
    return Outcome("conflict", 409, first_id, message)
