"""The oldest end of a projection: the only place from which retention takes generations, each with its replays and its events.

Never the newest generation, never anything that is not past its term, and nothing behind that. Joins its caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from projection.database.catalogue import execute, fetch, fetch_each
from projection.database.clock import from_db
from projection.models import Event, WorkItem
from projection.order import Membership, Place
from projection.retention.cut_offs import CutOffs, Preview, Pruned
from projection.retention.removal import lineages, remove, remove_events
from projection.rows import WorkRow

GENERATIONS_A_UNIT: Final = 100
"""Generations of one projection removed in one transaction; the rest of a long history goes with the next ones."""
EVENTS_A_UNIT: Final = 1000
"""Events removed in one transaction, over all of its projections. A single generation goes whole, whatever its size."""
FROM_THE_START: Final = -1


@dataclass(frozen=True, slots=True)
class Taken:
    """What went. `more`: the projections of which there is more to look at, behind these ordinals."""

    pruned: Pruned
    more: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Consecutive generations from the oldest on, without the newest: selection → item id. `is_cut`: others stand behind them."""

    items: Mapping[Place, int]
    is_cut: bool


def take_oldest_ends(keys: Mapping[str, int], cut_offs: CutOffs, preview: Preview | None) -> Taken:
    """Remove what may go of each projection (key → look behind this ordinal), a bounded piece of it.

    About a dozen statements, and one for each projection that loses something. Rows of a projection that are not in the piece are not
    read, but where it has rows from before ordinals.
    """
    mixed = Event.objects.read_mixed_keys(keys)
    pieces = _pieces({key: after for key, after in keys.items() if key not in mixed})
    pieces |= _mixed_pieces(mixed, whole=preview is not None)
    found = lineages([item for piece in pieces.values() for item in piece.items.values()], preview)
    rows: list[WorkRow] = []
    owned: list[int] = []
    more: dict[str, int] = {}
    ranged = Pruned()
    for key, piece in pieces.items():
        gone = list(_over(piece, found, cut_offs))
        if not gone:
            continue
        rows += [row for place in gone for row in found[piece.items[place]]]
        if key in mixed:
            owned += _owned(key, gone)
        else:
            ranged += _remove_range(key, keys[key], gone[-1].ordinal, preview)
        if piece.is_cut and len(gone) == len(piece.items):
            more[key] = gone[-1].ordinal
    return Taken(ranged + remove(rows, [*owned, *(row.event_id for row in rows if row.is_replay)], preview), more)


def _over(piece: _Piece, found: Mapping[int, Sequence[WorkRow]], cut_offs: CutOffs) -> Iterator[Place]:
    """The selections from the oldest on whose items and replays are all past their term; the first that is not ends it."""
    for place, item in piece.items.items():
        rows = found.get(item)
        if not rows or rows[0].selection != place or not all(cut_offs.is_over(row) for row in rows):
            return
        yield place


def _pieces(keys: Mapping[str, int]) -> dict[str, _Piece]:
    if not keys:
        return {}
    behind = [(key, after) for key, after in keys.items()]
    most = GENERATIONS_A_UNIT + 1
    generations: dict[str, list[tuple[int, Place]]] = {key: [] for key in keys}
    for key, item, event, ordinal, created, sequence in fetch_each("read_oldest_generations", [(*one, most) for one in behind]):
        generations[key].append((item, Place(event, ordinal, from_db(created), sequence)))
    limits = dict(fetch_each("read_event_limit", [(*one, max(1, EVENTS_A_UNIT // len(keys))) for one in behind]))
    return {key: _piece(rows, limits.get(key)) for key, rows in generations.items()}


def _piece(rows: Sequence[tuple[int, Place]], limit: int | None) -> _Piece:
    """`limit`: the ordinal of the event behind those that the unit may remove; None = there are fewer."""
    rows = sorted(rows, key=lambda row: row[1].admission)[:-1]
    within = [row for row in rows if limit is None or row[1].ordinal < limit] or rows[:1]
    is_cut = len(within) < len(rows) or len(rows) == GENERATIONS_A_UNIT
    return _Piece({place: item for item, place in within}, is_cut)


def _mixed_pieces(keys: Iterable[str], *, whole: bool) -> dict[str, _Piece]:
    """Where rows are from before ordinals, order is that of the whole history. `whole`: not only a unit's share of it."""
    selections: dict[str, dict[Place, int]] = {key: {} for key in keys}
    for key, item, place in WorkItem.objects.read_selections(selections) if selections else ():
        selections[key][place] = item
    pieces = {}
    for key, items in selections.items():
        places = Membership(items).history[:-1]
        share = places if whole else places[:GENERATIONS_A_UNIT]
        pieces[key] = _Piece({place: items[place] for place in share}, len(share) < len(places))
    return pieces


def _owned(key: str, gone: Sequence[Place]) -> list[int]:
    """Ids of the events that the generations represent, where ordinals alone do not tell."""
    membership = Membership([place for _, _, place in WorkItem.objects.read_selections([key])])
    taken = set(gone)
    return [place.event_id for _, place in Event.objects.read_event_places([key]) if membership.owner(place) in taken]


def _remove_range(key: str, after: int, through: int, preview: Preview | None) -> Pruned:
    if preview is None:
        return Pruned(events=execute("delete_range", key=key, through=through))
    return remove_events((row[0] for row in fetch("read_range", key=key, after=after, through=through)), preview)
