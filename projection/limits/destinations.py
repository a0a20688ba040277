"""Destinations: what flows call, and what the error of an attempt says of its own: it is away, it is there, or nothing.

The engine knows the exceptions of its own contract and those of Python. A client of foreign systems adds a reader for its exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from projection import flows
from projection.facts import Outage, RouteFacts, Seen
from projection.flows import Unavailable
from projection.safe_text import error_text

AT_ONCE: Final = 4
"""Attempts of one destination that one worker process runs at once."""
LONGEST_NAME: Final = 255
"""Characters that a destination's row holds."""


def name_of(flow_name: str, namespace: str, connection: str) -> str:
    """What a flow calls: its declared destination, else the connection of its route, else the flow itself.

    A connection belongs to its namespace (`default/crm`); a declared destination and a flow are everybody's.
    """
    flow = flows.find(flow_name)
    if flow is not None and flow.destination:
        return flow.destination[:LONGEST_NAME]
    return (f"{namespace}/{connection}" if connection else flow_name)[:LONGEST_NAME]


def destination_of(route: RouteFacts) -> str:
    """The destination of a route's work."""
    return name_of(route.flow_name, route.namespace, route.connection)


Reader = Callable[[BaseException], Outage | Seen | None]
_readers: Final[list[Reader]] = []


def reader(function: Reader) -> Reader:
    """Register a function that reads exceptions of a client; None: it does not know this one. The first that knows it decides."""
    _readers.append(function)
    return function


def outage_of(error: BaseException) -> Outage | Seen | None:
    """What an exception of a flow says of its destination; None: nothing."""
    if isinstance(error, Unavailable):
        return Outage(error_text(error), error.certain, error.retry_after, error.answered)
    for read in _readers:
        if (found := read(error)) is not None:
            return found
    if isinstance(error, ConnectionError | TimeoutError):
        return Outage(error_text(error), certain=isinstance(error, ConnectionRefusedError))
    return None
