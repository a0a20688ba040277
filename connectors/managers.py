"""Managers whose methods have the names of the statements that they send (`ingress/receive.sql`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, IntegrityError, connections, models
from django.db.backends.utils import CursorWrapper

from connectors.delivery import ReceiptDraft
from projection.database import clock
from projection.database.catalogue import by_place, catalogue
from projection.database.transactions import DUPLICATE_KEY, error_code

_SQL: Final = Path(__file__).parent
_DRAFT: Final = tuple(field.name for field in fields(ReceiptDraft))
_draft_values: Final = attrgetter(*_DRAFT)


class ReceiptManager(models.Manager[Any]):
    """Sends on the default connection, or on the one of `db_manager(alias)`."""

    def insert_receipt(self, draft: ReceiptDraft, erasure_id: int | None = None) -> int | None:
        """Insert one receipt, received now by the database's clock unless the draft says when; its id. `erasure_id`: as a tombstone.

        None: the unique key knows this delivery id (and, for a conflict, this body). One statement, committed with it outside a
        transaction.
        """
        text, values_of = by_place(catalogue(_SQL)["insert_receipt"])
        values = dict(zip(_DRAFT, _draft_values(draft), strict=True))  # asdict() would copy deeply, for each delivery
        values |= {"received_at": clock.to_db(draft.received_at), "erasure_id": erasure_id}
        try:
            with self._cursor() as cursor:
                cursor.execute(text, values_of(values))
                return int(cursor.lastrowid)
        except IntegrityError as error:
            if error_code(error) == DUPLICATE_KEY:
                return None
            raise

    def read_first_receipt(self, endpoint_id: int, idempotency_hash: str) -> tuple[int, str, int | None, str | None] | None:
        """(id, body hash, erasure, reading key where something was rejected) of the receipt that stands for a delivery id.

        None = none does (any more). One query.
        """
        with self._cursor() as cursor:
            cursor.execute(
                catalogue(_SQL)["read_first_receipt"], {"endpoint_id": endpoint_id, "idempotency_hash": idempotency_hash}
            )
            row = cursor.fetchone()
        return (int(row[0]), str(row[1]), row[2], row[3]) if row else None

    def read_receipt_again(self, receipt_id: int, reading_key: str) -> int:
        """Give a receipt of which something was rejected back to the router, unless it was read by this key; number of rows."""
        with self._cursor() as cursor:
            cursor.execute(catalogue(_SQL)["read_receipt_again"], {"id": receipt_id, "reading_key": reading_key})
            return int(cursor.rowcount)

    def forget_conflict(self, draft: ReceiptDraft, erasure_id: int) -> int:
        """Make a tombstone of the conflict receipt of this draft; number of rows. One statement."""
        values = {
            "erasure_id": erasure_id,
            "endpoint_id": draft.endpoint_id,
            "idempotency_hash": draft.idempotency_hash,
            "conflict_hash": draft.conflict_hash,
        }
        with self._cursor() as cursor:
            cursor.execute(catalogue(_SQL)["forget_conflict"], values)
            return int(cursor.rowcount)

    @property
    def _cursor(self) -> Callable[[], CursorWrapper]:
        return connections[self._db or DEFAULT_DB_ALIAS].cursor
