"""Text that strangers sent, made fit to be shown: which masks apply to it, and what it is under them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from django.db.models import QuerySet

from connectors.models import AuditEntry, Receipt, Route
from projection.facts import RouteFacts
from projection.masking import HIDDEN, BadMask, mask
from projection.models import Event


def masked(text: str, masks: Iterable[str], *, anywhere: bool = False) -> str:
    """`text` under its masks; hidden whole when a stored mask cannot be read (better too little than too much)."""
    try:
        return mask(text, masks, anywhere=anywhere)
    except BadMask:
        return HIDDEN


def erasure_of(row: Receipt | Event) -> AuditEntry | None:
    """The audit entry of the erasure that made a tombstone of the row: when, by whom and why; None: it is whole. One query at most."""
    return None if row.erasure_id is None else AuditEntry.objects.filter(id=row.erasure_id).first() or AuditEntry(id=row.erasure_id)


def body_text(body: bytes) -> tuple[str, bool]:
    """The body as text, and whether it is not UTF-8 (each foreign byte is then shown as an escape such as `\\xff`)."""
    try:
        return body.decode("utf-8"), False
    except UnicodeDecodeError:
        return body.decode("utf-8", "backslashreplace"), True


def event_masks(event: Event) -> tuple[str, ...]:
    """The masks of an event: those of the route version that took it, and those of the newest one, retired or not. One query.

    An unrouted event, or one whose snapshot cannot be read, gets the masks of every route of its pack.
    """
    facts = _snapshot(event.route_snapshot)
    if facts is None:
        return _masks(Route.objects.filter(pack_id=event.pack_id))
    newest = Route.objects.filter(namespace=facts.namespace, route_key=facts.key).order_by("-version")[:1]
    return tuple(dict.fromkeys((*facts.masks, *_of(newest.values_list("masks", flat=True)))))


def _snapshot(text: str | None) -> RouteFacts | None:
    try:
        return RouteFacts.from_snapshot(text) if text else None
    except ValueError:
        return None


def pack_masks(namespace: str, pack_name: str) -> tuple[str, ...]:
    """The masks of all routes of a pack, of every version: a receipt may hold items of each. One query."""
    return _masks(Route.objects.filter(namespace=namespace, pack_name=pack_name))


def kind_masks(namespace: str, pack_name: str, event_kind: str) -> tuple[str, ...]:
    """The masks of all routes that give this canonical kind: they fed the live record. One query."""
    return _masks(Route.objects.filter(namespace=namespace, pack_name=pack_name, event_kind=event_kind))


def _masks(routes: QuerySet[Route]) -> tuple[str, ...]:
    return _of(routes.exclude(masks="[]").values_list("masks", flat=True))


def _of(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(one) for text in texts for one in json.loads(text)))
