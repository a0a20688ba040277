"""The newest events of one source, bounded however many events it has and however many other sources share its id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from projection.database.catalogue import Sender
from projection.identity import source_key

LOOKED_AT: Final = 20_000
"""Events of the same id that are looked at for one source. Only other sources with the same id, of another type or account, use that up."""
_FIRST_LOOK: Final = 500
_LATER_LOOK: Final = 5_000
NO_ID: Final = 2**63 - 1
"""Above every id that there is."""

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Newest:
    """Ids of a source's newest events, newest first. `is_cut`: LOOKED_AT events were seen, and older ones may be of the source too."""

    ids: list[int]
    is_cut: bool = False


def newest_of_source(
    source_type: str,
    source_id: str,
    limit: int,
    *,
    namespace: str | None = None,
    account: str | None = None,
    below: int | None = None,
) -> Newest:
    """The newest events of a source, at most `limit`, of all namespaces and accounts where none is given; `below`: only those with a
    smaller id.

    One statement where the id belongs to one source; up to five where other sources share it (index ix_event_source).
    The source is told by its key, never by what a collation finds equal.
    """
    found: list[int] = []
    seen = 0
    for event_id, key, its_namespace, its_account in _of_id(source_id, below):
        seen += 1
        is_asked_for = namespace in (None, its_namespace) and account in (None, its_account)
        if is_asked_for and key == source_key(its_account, source_type, source_id):
            found.append(event_id)
            if len(found) == limit:
                return Newest(found)
    return Newest(found, is_cut=seen >= LOOKED_AT)


def _of_id(source_id: str, below: int | None) -> Iterator[tuple[int, str, str, str]]:
    """(id, source key, namespace, account) of the events with a readable id, newest first, a page at a time, LOOKED_AT at most."""
    seen, size, under = 0, _FIRST_LOOK, NO_ID if below is None else below
    while seen < LOOKED_AT:
        page = _sql.fetch("read_events_of_id", source_id=source_id, below=under, limit=size)
        yield from page
        if len(page) < size:
            return
        seen, under, size = seen + len(page), page[-1][0], _LATER_LOOK
