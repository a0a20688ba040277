"""The rows of live records: locked and read at once, written back at once. Both join their caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from connectors.flows.record_fold import RecordState, place_of, place_text, properties_of, properties_text
from projection.database.catalogue import Sender
from projection.database.clock import now, to_db
from projection.facts import Source
from projection.identity import record_key

sql: Final = Sender(Path(__file__).parent)
EPOCH: Final = datetime(1970, 1, 1)
"""Naive UTC, as times are stored."""


class RecordVanished(RuntimeError):
    """A record was erased between its look-up and its lock; the attempt runs again and starts the record again."""


@dataclass(frozen=True, slots=True)
class RecordIdentity:
    """Which record: one of a provider's source records, as one canonical event kind sees it."""

    namespace: str
    pack_name: str
    event_kind: str
    account: str
    """Tells apart records that share an id: a provider's accounts (HubSpot portals) number their records each for themselves."""
    source_type: str
    source_id: str
    source_lane: str = field(default="", compare=False)
    """For people: the lane may be wider than the record."""

    @property
    def key(self) -> str:
        source = Source(self.source_type, self.source_id, self.account)
        return record_key(self.namespace, self.pack_name, self.event_kind, source)


@dataclass(frozen=True, slots=True)
class LockedRecord:
    """A record row under this transaction's lock."""

    id: int
    identity: RecordIdentity
    state: RecordState
    read_at: datetime
    """The database's clock at the lock, naive UTC as stored."""


def lock_records(identities: Collection[RecordIdentity]) -> dict[RecordIdentity, LockedRecord]:
    """Every given record, locked; a new one gets its empty row. Two statements, five when some are new.

    Raises RecordVanished when a record is erased at the same moment.
    """
    by_key = {identity.key: identity for identity in sorted(identities, key=lambda identity: identity.key)}
    ids = _read_record_ids(list(by_key))
    missing = [identity for key, identity in by_key.items() if key not in ids]
    if missing:
        _insert_missing_records(missing)
        ids = _read_record_ids(list(by_key))
    rows = sql.fetch("lock_records", ids=tuple(sorted(ids.values())))
    if len(rows) < len(by_key):
        raise RecordVanished(str(RecordVanished.__doc__))
    return {by_key[row[1]]: _locked(row, by_key[row[1]]) for row in rows}


def _read_record_ids(keys: Sequence[str]) -> dict[str, int]:
    return dict(sql.fetch("read_record_ids", keys=tuple(keys)))


def _insert_missing_records(missing: Sequence[RecordIdentity]) -> None:
    moment = to_db(now())
    sql.insert_rows("insert_missing_records", [(*_columns(one), "{}", 0, 0, 0, 0, moment, moment) for one in missing])


def _locked(row: tuple[Any, ...], identity: RecordIdentity) -> LockedRecord:
    id_, _, properties, deleted, merged_into, lifecycle_ordinal, event_count, last_ordinal, read_at, lifecycle, newest, late = row
    state = RecordState(
        properties_of(properties),
        bool(deleted),
        merged_into,
        lifecycle_ordinal,
        event_count,
        last_ordinal,
        place_of(lifecycle),
        place_of(newest),
        late,
    )
    return LockedRecord(id_, identity, state, read_at)


def write_records(records: Iterable[tuple[LockedRecord, RecordState]]) -> None:
    """Store the new state of locked records, in one multi-row statement (more when they exceed a packet)."""
    rows = []
    for locked, state in records:
        folded = (
            properties_text(state.properties),
            state.deleted,
            state.merged_into,
            state.lifecycle_ordinal,
            state.event_count,
            state.last_ordinal,
            place_text(state.lifecycle_received),
            place_text(state.newest_received),
            state.late_count,
        )
        rows.append((locked.id, *_columns(locked.identity), *folded, locked.read_at, locked.read_at))
    sql.insert_rows("write_records", rows)


def _columns(identity: RecordIdentity) -> tuple[str, ...]:
    return (
        identity.key,
        identity.namespace,
        identity.pack_name,
        identity.event_kind,
        identity.account,
        identity.source_type,
        identity.source_id,
        identity.source_lane,
    )


def read_moments(receipt_ids: Collection[int]) -> dict[int, int]:
    """Receipt id → when it arrived, in microseconds since 1970. One statement; none for no ids."""
    if not receipt_ids:
        return {}
    rows = sql.fetch("read_moments_of_receipts", ids=tuple(sorted(receipt_ids)))
    return {receipt_id: (at - EPOCH) // timedelta(microseconds=1) for receipt_id, at in rows}
