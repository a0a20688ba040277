"""Who did it: the name of an operator, made fit for the columns that keep it."""

from __future__ import annotations

from typing import Final

from projection.safe_text import storable

ACTOR_CHARACTERS: Final = 150
"""The width of those columns, and of a user's name in Django."""


def storable_actor(actor: str) -> str:
    """Any name: what cannot be stored is escaped, what is too long is cut."""
    return storable(actor)[:ACTOR_CHARACTERS]
