"""What refusals of a replay or discard mean, for people: one sentence for each code, without the name of one item."""

from __future__ import annotations

from typing import Final

_WORDS: Final = {
    "active_generation": "work of the same source is active; replay again once it has ended",
    "already_discarded": "discarded already",
    "already_replayed": "replayed already, and that replay has not died",
    "cancelled": "the job was cancelled before their turn",
    "class_change": "the current version of the route would change how it executes",
    "discarded": "discarded; a discarded item is not replayed",
    "erased": "its events were erased; there is nothing left to run it with",
    "failed": "it failed with an error of its own",
    "kind_change": "the current version of the route makes another event kind",
    "locked": "another transaction held it all the while; ask for it again",
    "no_class_proof": "its event has no route snapshot that proves how it executes",
    "no_current_route": "its route is retired; replay it under the version that it died under",
    "not_dead": "not dead",
    "not_found": "not retained any more, or its pack is gone",
    "replay_running": "its replay runs; wait for it, or cancel it first",
    "same_source": "an earlier one of the same source is replayed first",
}


def words(code: str) -> str:
    """The sentence of a code; an unknown code (of a newer process) is shown as it is."""
    return _WORDS.get(code, code.replace("_", " "))
