"""Which source an operator names, and the rows that are its: a page at a time, read without a lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from connectors.models import Pack
from connectors.retention.erased_bodies import Source, sql
from projection.refusals import Refused
from projection.retention.erasure import tombstone_id

EVENTS_A_UNIT: Final = 100
"""Tombstones made in one transaction, with as many bodies; it holds the namespace."""


def find_source(text: str, namespace: str, pack: str | None = None) -> Source | Refused:
    """The source that `type:id` names. Refused: `not_found`, or `ambiguous` (types and ids may contain colons)."""
    packs = list(Pack.objects.filter(namespace=namespace, **({"name": pack} if pack else {})).values_list("id", "name"))
    pack_ids, pack_names = tuple(one for one, _ in packs), tuple(sorted({name for _, name in packs}))
    found = []
    for at in (place for place, character in enumerate(text) if character == ":"):
        ids = tuple(dict.fromkeys((text[at + 1 :], text[at + 1 :].casefold())))
        source = Source(namespace, text[:at], ids, pack_ids, pack_names)
        if packs and is_known(source):
            found.append(source)
    if len(found) == 1:
        return found[0]
    if found:
        types = ", ".join(repr(one.type) for one in found)
        return Refused(
            text, "ambiguous", f"{text} matches {len(found)} sources, of the types {types}; erase their receipts instead"
        )
    return Refused(text, "not_found", f"no stored event or record of {namespace} has the source {text}")


def is_known(source: Source) -> bool:
    return bool(next(live_events(source), None) or next(tombstones(source), None) or records(source))


def live_events(source: Source) -> Iterator[list[int]]:
    """Ids of the source's events that are no tombstones, by ascending id; no page is empty."""
    for page in _pages("read_source_events", source, source.ids):
        if named := [row[0] for row in page if source.is_named(source.type, row[1])]:
            yield named


def tombstones(source: Source) -> Iterator[list[tuple[int, int, int]]]:
    """(id, receipt id, erasure id) of the source's events that are erased."""
    yield from _pages("read_tombstones", source, tuple(tombstone_id(source.type, one) for one in source.ids))


def _pages(name: str, source: Source, source_ids: tuple[str, ...]) -> Iterator[list[Any]]:
    after = 0
    scope = {"source_type": source.type, "namespace": source.namespace, "pack_ids": source.pack_ids, "limit": EVENTS_A_UNIT}
    while rows := sql.fetch(name, source_ids=source_ids, after=after, **scope):
        after = rows[-1][0]
        yield rows


def with_siblings(source: Source, event_ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """(the events and those of the source that came from the same items, also under a name that is not folded; others' from them)."""
    rows = sql.fetch("read_item_siblings", event_ids=tuple(event_ids)) if event_ids else []
    same = {one for one, source_type, source_id in rows if source.is_named(source_type, source_id)}
    return sorted({*event_ids} | same), sorted({row[0] for row in rows} - same)


def records(source: Source) -> list[int]:
    """Ids of the source's live records."""
    rows = sql.fetch(
        "read_records",
        source_ids=source.ids,
        source_type=source.type,
        namespace=source.namespace,
        pack_names=source.pack_names,
    )
    return [row[0] for row in rows if source.is_named(source.type, row[1])]
