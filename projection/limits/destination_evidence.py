"""What the end of an attempt says of its destination: it is away, it is there, or nothing.

The engine knows the exceptions of its own contract and those of Python. A client of foreign systems adds a reader for its exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from projection.flows import Unavailable
from projection.safe_text import error_text


class Seen(Enum):
    """The destination answered: with success, or with a refusal of this very request."""

    ALIVE = "alive"


ALIVE: Final = Seen.ALIVE


@dataclass(frozen=True, slots=True)
class Outage:
    """The destination took nothing. `certain`: whatever had been sent, so the item is not at fault; else it may be.

    `retry_after`: seconds that the destination asked everybody to wait.
    """

    reason: str
    certain: bool
    retry_after: float | None = None


Reader = Callable[[BaseException], Outage | Seen | None]
_readers: Final[list[Reader]] = []


def reader(function: Reader) -> Reader:
    """Register a function that reads exceptions of a client; None: it does not know this one. The first that knows it decides."""
    _readers.append(function)
    return function


def outage_of(error: BaseException) -> Outage | Seen | None:
    """What an exception of a flow says of its destination; None: nothing."""
    if isinstance(error, Unavailable):
        return Outage(error_text(error), error.certain, error.retry_after)
    for read in _readers:
        if (found := read(error)) is not None:
            return found
    if isinstance(error, ConnectionError | TimeoutError):
        return Outage(error_text(error), certain=isinstance(error, ConnectionRefusedError))
    return None
