"""What refusals of a replay or discard mean, for people: one sentence for each code, without the name of one item."""

from __future__ import annotations

from typing import Final

_WORDS: Final = {
    "active_generation": "work of the same record is active; replay again after it ends",
    "already_discarded": "already discarded",
    "already_replayed": "already replayed, and that replay has not failed",
    "cancelled": "the job was cancelled before this item",
    "class_change": "the current version of the route has another mode; replay it under its original version",
    "discarded": "discarded; restore it first, then replay it",
    "erased": "its events were erased, so it cannot run",
    "failed": "the replay failed with an error",
    "kind_change": "the current version of the route emits another event kind; replay it under its original version",
    "locked": "in use by another operation; try again",
    "no_class_proof": "its event has no route snapshot, so how to run it is unknown",
    "no_current_route": "its route is retired; replay it under its original version",
    "not_dead": "not a dead letter",
    "not_found": "no longer retained, or its pack is removed",
    "replay_running": "its replay is running; wait for it or cancel it first",
    "same_source": "an earlier one of the same record is replayed first",
}


def words(code: str) -> str:
    """The sentence of a code; an unknown code (of a newer process) is shown as it is."""
    return _WORDS.get(code, code.replace("_", " "))
