"""Which source an operator names, and the rows that are its: a page at a time, read without a lock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from connectors.ingress.endpoint_facts import account_of
from connectors.models import AuditEntry, Endpoint, Pack
from connectors.retention.erased_bodies import Source, sql
from projection.refusals import Refused
from projection.retention.erasure import tombstone_id

EVENTS_A_UNIT: Final = 100
"""Tombstones made in one transaction, with as many bodies; it holds the namespace."""
ERASE_ACTION: Final = "source.erase"
ERASURES_READ: Final = 10_000
"""The newest audit entries that are looked through for accounts."""


def find_source(text: str, namespace: str, pack: str | None = None, account: str | None = None) -> Source | Refused:
    """The source that `type:id` names, of `account` where one is given. Refused: `not_found`, or `ambiguous` (types and ids may contain
    colons, and several accounts may have a record of one id).
    """
    packs = list(Pack.objects.filter(namespace=namespace, **({"name": pack} if pack else {})).values_list("id", "name"))
    pack_ids, pack_names = tuple(one for one, _ in packs), tuple(sorted({name for _, name in packs}))
    found = []
    for at in (place for place, character in enumerate(text) if character == ":") if packs else ():
        ids = tuple(dict.fromkeys((text[at + 1 :], text[at + 1 :].casefold())))
        draft = Source(namespace, account or "", text[:at], ids, pack_ids, pack_names)
        accounts = _accounts(draft) if account is None else [account]
        found += [source for one in accounts if is_known(source := replace(draft, account=one))]
    if len(found) == 1:
        return found[0]
    if found:
        return _ambiguous(text, found)
    of = f" of account {account!r}" if account else ""
    return Refused(text, "not_found", f"no stored event or record of {namespace} has the source {text}{of}")


def _accounts(source: Source) -> list[str]:
    """Those that may have, or have had, a record of this type and id: of its rows, of the endpoints, and of earlier erasures, whose
    tombstones name no source.
    """
    scope = {"source_ids": source.ids, "source_type": source.type, "namespace": source.namespace, "pack_names": source.pack_names}
    found = {row[0] for row in sql.fetch("read_accounts_of_source", pack_ids=source.pack_ids, **scope)}
    endpoints = Endpoint.objects.filter(namespace=source.namespace).values_list("account", "slug")
    erasures = AuditEntry.objects.filter(action=ERASE_ACTION).order_by("-id").values_list("detail", flat=True)
    erased = {json.loads(detail).get("account") for detail in erasures[:ERASURES_READ]}
    return sorted({"", *found, *(account_of(own, slug) for own, slug in endpoints), *filter(None, erased)})


def _ambiguous(text: str, found: Sequence[Source]) -> Refused:
    types, accounts = sorted({one.type for one in found}), sorted({one.account for one in found})
    if len(types) > 1:
        named = ", ".join(repr(one) for one in types)
        return Refused(
            text, "ambiguous", f"{text} matches {len(found)} sources, of the types {named}; erase their receipts instead"
        )
    named = ", ".join(repr(one) for one in accounts)
    return Refused(text, "ambiguous", f"{text} exists in {len(found)} accounts: {named}; name one with --account")


def is_known(source: Source) -> bool:
    return bool(next(live_events(source), None) or next(tombstones(source), None) or records(source))


def live_events(source: Source) -> Iterator[list[int]]:
    """Ids of the source's events that are no tombstones, by ascending id; no page is empty."""
    for page in _pages("read_source_events", source, source.ids):
        if named := [row[0] for row in page if source.is_named(row[1], source.type, row[2])]:
            yield named


def tombstones(source: Source) -> Iterator[list[tuple[int, int, int]]]:
    """(id, receipt id, erasure id) of the source's events that are erased."""
    yield from _pages("read_tombstones", source, tuple(tombstone_id(source.account, source.type, one) for one in source.ids))


def _pages(name: str, source: Source, source_ids: tuple[str, ...]) -> Iterator[list[Any]]:
    after = 0
    scope = {"source_type": source.type, "namespace": source.namespace, "pack_ids": source.pack_ids, "limit": EVENTS_A_UNIT}
    while rows := sql.fetch(name, source_ids=source_ids, after=after, **scope):
        after = rows[-1][0]
        yield rows


def with_siblings(source: Source, event_ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """(the events and those of the source that came from the same items, also under a name that is not folded; others' from them)."""
    rows = sql.fetch("read_item_siblings", event_ids=tuple(event_ids)) if event_ids else []
    same = {one for one, *names in rows if source.is_named(*names)}
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
    return [row[0] for row in rows if source.is_named(row[1], source.type, row[2])]
