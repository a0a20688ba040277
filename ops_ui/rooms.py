"""The pages of the console in the order in which data passes, and the right that each one needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol


class HasPermissions(Protocol):
    def has_perm(self, perm: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Room:
    """One entry of the navigation. `name` is its URL's name within `admin:` and the key that marks it as current."""

    name: str
    title: str
    permission: str
    section: str = ""


OVERVIEW: Final = Room("index", "Overview", "projection.view_workitem")
TRACE: Final = Room("trace", "Trace", "projection.view_event")
RECEIPTS: Final = Room("receipts", "Receipts", "connectors.view_receipt", "Flow")
EVENTS: Final = Room("events", "Events", "projection.view_event", "Flow")
GENERATIONS: Final = Room("generations", "Generations", "projection.view_workitem", "Flow")
LANES: Final = Room("lanes", "Lanes", "projection.view_workitem", "Flow")
DEAD_LETTERS: Final = Room("dead_letters", "Dead letters", "projection.view_workitem", "Flow")
JOBS: Final = Room("replays", "Replays", "projection.view_job", "Flow")
SOURCES: Final = Room("sources", "Sources", "projection.view_event", "Flow")
RECORDS: Final = Room("records", "Records", "connectors.view_record", "Flow")
PACKS: Final = Room("packs", "Packs", "connectors.view_pack", "Set-up")
ENDPOINTS: Final = Room("endpoints", "Endpoints", "connectors.view_endpoint", "Set-up")
ROUTES: Final = Room("routes", "Routes", "connectors.view_route", "Set-up")
CONNECTIONS: Final = Room("connections", "Connections", "connectors.view_connection", "Set-up")
UNVERIFIED: Final = Room("unverified", "Failed signatures", "connectors.view_unverifieddelivery", "Set-up")
DESTINATIONS: Final = Room("destinations", "Destinations", "projection.view_destination", "Service")
PAUSES: Final = Room("pauses", "Pauses", "connectors.view_namespace", "Service")
WORKERS: Final = Room("workers", "Workers", "projection.view_worker", "Service")
AUDIT: Final = Room("audit", "Audit", "connectors.view_auditentry", "Service")
USERS: Final = Room("auth_user_changelist", "Users", "auth.view_user", "Service")

ROOMS: Final = (
    OVERVIEW,
    TRACE,
    RECEIPTS,
    EVENTS,
    GENERATIONS,
    LANES,
    DEAD_LETTERS,
    JOBS,
    SOURCES,
    RECORDS,
    PACKS,
    ENDPOINTS,
    ROUTES,
    CONNECTIONS,
    UNVERIFIED,
    DESTINATIONS,
    PAUSES,
    WORKERS,
    AUDIT,
    USERS,
)


def sections(user: HasPermissions) -> list[tuple[str, list[Room]]]:
    """The rooms that `user` may enter, by section, in order; sections without one are left out."""
    grouped: dict[str, list[Room]] = {}
    for room in ROOMS:
        if user.has_perm(room.permission):
            grouped.setdefault(room.section, []).append(room)
    return list(grouped.items())
