"""Input loss: replacing an unclaimed selection must keep every input that it represented (docs/protocol.md#input-loss).

Joins the admitted transaction. Ordinals and ingress times prove it on the normal path; only projections with rows from before
ordinals are evaluated event by event.
"""

from __future__ import annotations

from collections.abc import Sequence

from projection.database.catalogue import chunks
from projection.models import Event, WorkItem
from projection.order import Membership, Place
from projection.rows import WorkRow

KEYS_A_STATEMENT = 128


class UnsafeReplacement(RuntimeError):
    """A newer selection would no longer represent an input that the current one does; the admission fails and nothing is lost.

    It happens only where rows from before ordinals are out of order. Let the named generation run (or cancel it), then re-route.
    """


def is_proven(before: Place, after: Place) -> bool:
    """Whether a later positive ordinal together with later ingress time proves that `after` represents all that `before` does."""
    return before == after or (0 < before.ordinal < after.ordinal and before.ingress < after.ingress)


def refuse_losses(replacements: Sequence[tuple[WorkRow, Place]]) -> None:
    """Raise UnsafeReplacement when a replacement would lose an input; `replacements` are (generation, new selection) without proof.

    One statement for a chunk whose projections all have ordinals; three more for those that do not.
    """
    for chunk in chunks(replacements, KEYS_A_STATEMENT):
        by_key = {row.projection_key: (row, place) for row, place in chunk if row.projection_key}
        mixed = Event.objects.read_mixed_keys(by_key) if by_key else set()
        mixed |= {key for key, (_, place) in by_key.items() if not place.ordinal}
        if mixed:
            _refuse(by_key, mixed)


def _refuse(by_key: dict[str, tuple[WorkRow, Place]], mixed: set[str]) -> None:
    selections: dict[str, dict[int, Place]] = {key: {} for key in mixed}
    for key, item, place in WorkItem.objects.read_selections(mixed):
        selections[key][item] = place
    before = {key: Membership(places.values()) for key, places in selections.items()}
    after = {key: Membership({**places, by_key[key][0].id: by_key[key][1]}.values()) for key, places in selections.items()}
    for key, event in Event.objects.read_event_places(mixed):
        if before[key].owner(event) is not None and after[key].owner(event) is None:
            row, place = by_key[key]
            raise UnsafeReplacement(
                f"event {place.event_id} cannot replace the selected event of {row.work_id}: event {event.event_id} would be lost"
            )
