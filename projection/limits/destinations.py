"""Destinations: what flows call. Limits per destination, and the breaker, are about them."""

from __future__ import annotations

from typing import Final

from projection import flows
from projection.facts import RouteFacts

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
