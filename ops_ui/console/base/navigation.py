"""The pages of the console in the order in which data passes, and the right that each one needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol


class HasPermissions(Protocol):
    def has_perm(self, perm: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Room:
    """One entry of the navigation. `name` is its URL's name within `admin:` and marks it as current.

    `key` goes there after `g`; `word` is what the glossary says of it.
    """

    name: str
    title: str
    permission: str
    section: str = ""
    key: str = ""
    word: str = ""


OVERVIEW: Final = Room("index", "Overview", "projection.view_workitem", key="o")
TRACE: Final = Room("trace", "Trace", "projection.view_event", key="t")
RECEIPTS: Final = Room("receipts", "Receipts", "connectors.view_receipt", "Flow", "r", "receipt")
EVENTS: Final = Room("events", "Events", "projection.view_event", "Flow", "e", "event")
GENERATIONS: Final = Room("generations", "Generations", "projection.view_workitem", "Flow", "g", "generation")
LANES: Final = Room("lanes", "Lanes", "projection.view_workitem", "Flow", "l", "lane")
DEAD_LETTERS: Final = Room("dead_letters", "Dead letters", "projection.view_workitem", "Flow", "d", "dead-letter")
JOBS: Final = Room("replays", "Bulk jobs", "projection.view_job", "Flow", "p", "replay")
SOURCES: Final = Room("sources", "Sources", "projection.view_event", "Flow", "s", "source")
RECORDS: Final = Room("records", "Records", "connectors.view_record", "Flow", "c")
PACKS: Final = Room("packs", "Packs", "connectors.view_pack", "Configure", "k", "pack")
ENDPOINTS: Final = Room("endpoints", "Endpoints", "connectors.view_endpoint", "Configure", "n", "endpoint")
ROUTES: Final = Room("routes", "Routes", "connectors.view_route", "Configure", "u", "route")
CONNECTIONS: Final = Room("connections", "Connections", "connectors.view_connection", "Configure", "b")
UNVERIFIED: Final = Room("unverified", "Failed signatures", "connectors.view_unverifieddelivery", "Configure", "f")
DESTINATIONS: Final = Room("destinations", "Destinations", "projection.view_destination", "Operations", "i", "destination")
PAUSES: Final = Room("pauses", "Pauses", "connectors.view_namespace", "Operations", "h")
WORKERS: Final = Room("workers", "Workers", "projection.view_worker", "Operations", "w", "claim")
AUDIT: Final = Room("audit", "Audit log", "connectors.view_auditentry", "Operations", "a", "audit")
WORDS: Final = Room("words", "Glossary", OVERVIEW.permission, "Help")
KEYS: Final = Room("keys", "Keyboard shortcuts", OVERVIEW.permission, "Help")
USERS: Final = Room("auth_user_changelist", "Users", "auth.view_user", "Operations")

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
    WORDS,
    KEYS,
)


def sections(user: HasPermissions) -> list[tuple[str, list[Room]]]:
    """The rooms that `user` may enter, by section, in order; sections without one are left out."""
    grouped: dict[str, list[Room]] = {}
    for room in ROOMS:
        if user.has_perm(room.permission):
            grouped.setdefault(room.section, []).append(room)
    return list(grouped.items())
