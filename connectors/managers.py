"""Managers whose methods have the names of the statements that they send (`sql/receive.sql`)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from django.db import IntegrityError, connection, models

from connectors.delivery import ReceiptDraft
from projection.statements import catalogue
from projection.units import DUPLICATE_KEY, error_code

_SQL: Final = Path(__file__).parent / "sql"


class ReceiptManager(models.Manager[Any]):
    def insert_receipt(self, draft: ReceiptDraft) -> int | None:
        """Insert one receipt, received now by the database's clock; its id.

        None: the unique key knows this delivery id (and, for a conflict, this body). One statement, committed with it outside a
        transaction.
        """
        try:
            with connection.cursor() as cursor:
                cursor.execute(catalogue(_SQL)["insert_receipt"], asdict(draft))
                return int(cursor.lastrowid)
        except IntegrityError as error:
            if error_code(error) == DUPLICATE_KEY:
                return None
            raise

    def read_first_receipt(self, endpoint_id: int, idempotency_hash: str) -> tuple[int, str] | None:
        """(id, body hash) of the receipt that stands for a delivery id; None = none does (any more). One query."""
        with connection.cursor() as cursor:
            cursor.execute(
                catalogue(_SQL)["read_first_receipt"], {"endpoint_id": endpoint_id, "idempotency_hash": idempotency_hash}
            )
            row = cursor.fetchone()
        return (int(row[0]), str(row[1])) if row else None
