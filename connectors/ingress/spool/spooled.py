"""One spooled delivery: the whole receipt as it will be, so that draining needs neither the pack's code nor the endpoint's row."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Self

from connectors.delivery import ReceiptDraft
from projection.identity import digest

VERSION: Final = 1
_DRAFT: Final = tuple(field.name for field in fields(ReceiptDraft) if field.name not in ("body", "received_at"))


class UnknownRecord(ValueError):
    """The record was written by another version of Headrace, or is none."""


@dataclass(frozen=True, slots=True)
class SpooledDelivery:
    """`arrived_us`: microseconds since 1970 by this host's clock; the drain turns them into the database's time."""

    arrived_us: int
    slug: str
    pack_name: str
    draft: ReceiptDraft

    def payload(self) -> bytes:
        """What a record holds: a line of JSON, then the exact body."""
        draft = {name: value for name, value in asdict(self.draft).items() if name in _DRAFT}
        members = {"v": VERSION, "arrived_us": self.arrived_us, "slug": self.slug, "pack_name": self.pack_name, "draft": draft}
        return json.dumps(members).encode("ascii") + b"\n" + self.draft.body

    @classmethod
    def of(cls, payload: bytes) -> Self:
        """Raises UnknownRecord."""
        line, _, body = payload.partition(b"\n")
        try:
            members: dict[str, Any] = json.loads(line)
            if members.pop("v") != VERSION:
                raise UnknownRecord("it was written by another version of Headrace")
            return cls(**members | {"draft": ReceiptDraft(body=body, **members["draft"])})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UnknownRecord(f"it contains no delivery ({type(error).__name__})") from error


def identified(draft: ReceiptDraft) -> ReceiptDraft:
    """The draft with an identity of its own where its provider gave none: however often it is inserted, it is one receipt.

    Needed as soon as an INSERT may be repeated without the provider: after one whose answer was lost, or a kill before the record of
    the spool is removed. What people see of a receipt does not change: its readable id stays empty.
    """
    if draft.idempotency_hash is not None:
        return draft
    return replace(draft, idempotency_hash=digest("arrival", str(uuid.uuid4())))
