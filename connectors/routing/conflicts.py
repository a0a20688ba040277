"""Conflicts: a known delivery that came again with another payload. Some are none: a provider may count its own retries in the body."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.routing.route_table import RouteBook
from projection.admission.coverage import Known
from projection.exact_json import NotJson, parse
from projection.models import Event


def real_conflicts(found: Sequence[Known], book: RouteBook) -> list[Known]:
    """Those of the differing duplicates that their pack does not call the same fact. One read; none when nothing differs."""
    stored = [known.event.id for known in found if known.event is not None]
    texts = {row.id: row.payload for row in Event.objects.read_events(stored)} if stored else {}
    return [known for known in found if not _is_same(known, texts, book)]


def _is_same(known: Known, texts: dict[int, str], book: RouteBook) -> bool:
    first = known.first.payload if known.first is not None else texts.get(known.event.id if known.event else 0)
    if first is None:
        return False
    pack = book.pack_object(known.inbound.pack_id)
    try:
        return pack.is_same_fact(parse(first), parse(known.inbound.payload))
    except NotJson:
        return False
