"""The pages of the console in the order in which data passes, and the right that each one needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol


class HasPermissions(Protocol):
    def has_perm(self, perm: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the navigation. `name` is its URL's name within `admin:` and marks it as current.

    `key` goes there after `g`; `word` is what the glossary says of it.
    """

    name: str
    title: str
    permission: str
    section: str = ""
    key: str = ""
    word: str = ""


OVERVIEW: Final = Entry("index", "Overview", "projection.view_workitem", key="o")
TRACE: Final = Entry("trace", "Trace", "projection.view_event", key="t")
RECEIPTS: Final = Entry("receipts", "Receipts", "connectors.view_receipt", "Flow", "r", "receipt")
EVENTS: Final = Entry("events", "Events", "projection.view_event", "Flow", "e", "event")
GENERATIONS: Final = Entry("generations", "Generations", "projection.view_workitem", "Flow", "g", "generation")
LANES: Final = Entry("lanes", "Lanes", "projection.view_workitem", "Flow", "l", "lane")
DEAD_LETTERS: Final = Entry("dead_letters", "Dead letters", "projection.view_workitem", "Flow", "d", "dead-letter")
JOBS: Final = Entry("replays", "Bulk jobs", "projection.view_job", "Flow", "p", "replay")
SOURCES: Final = Entry("sources", "Sources", "projection.view_event", "Flow", "s", "source")
RECORDS: Final = Entry("records", "Records", "connectors.view_record", "Flow", "c")
PACKS: Final = Entry("packs", "Packs", "connectors.view_pack", "Configure", "k", "pack")
ENDPOINTS: Final = Entry("endpoints", "Endpoints", "connectors.view_endpoint", "Configure", "n", "endpoint")
ROUTES: Final = Entry("routes", "Routes", "connectors.view_route", "Configure", "u", "route")
CONNECTIONS: Final = Entry("connections", "Connections", "connectors.view_connection", "Configure", "b")
UNVERIFIED: Final = Entry("unverified", "Failed signatures", "connectors.view_unverifieddelivery", "Configure", "f")
DESTINATIONS: Final = Entry("destinations", "Destinations", "projection.view_destination", "Operations", "i", "destination")
PAUSES: Final = Entry("pauses", "Pauses", "connectors.view_namespace", "Operations", "h")
WORKERS: Final = Entry("workers", "Workers", "projection.view_worker", "Operations", "w", "claim")
AUDIT: Final = Entry("audit", "Audit log", "connectors.view_auditentry", "Operations", "a", "audit")
WORDS: Final = Entry("words", "Glossary", OVERVIEW.permission, "Help")
KEYS: Final = Entry("keys", "Keyboard shortcuts", OVERVIEW.permission, "Help")
USERS: Final = Entry("users", "Users", "auth.view_user", "Operations")

ENTRIES: Final = (
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


def sections(user: HasPermissions) -> list[tuple[str, list[Entry]]]:
    """The pages that `user` may open, by section, in order; sections without one are left out."""
    grouped: dict[str, list[Entry]] = {}
    for entry in ENTRIES:
        if user.has_perm(entry.permission):
            grouped.setdefault(entry.section, []).append(entry)
    return list(grouped.items())
