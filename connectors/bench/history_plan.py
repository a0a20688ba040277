"""What a made history consists of: packs, routes, errors, and how a size is divided into groups of interleaved blocks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from projection.facts import PER_EVENT, PROJECTION

BLOCKS: Final = 100
"""Work items of a group; their events are interleaved."""
ATTEMPTS: Final = 3
DAYS: Final = 14
QUIET: Final = timedelta(minutes=30)
"""Between the newest ordinary event and now; the replays lie in it."""
REPLAYS_IN: Final = timedelta(minutes=20)
PACKS: Final = ("hubspot", "github", "standard_webhooks")
ROUTES: Final = {
    "contacts": ("hubspot", "contact", PROJECTION, "record_table", 30),
    "companies": ("hubspot", "company", PROJECTION, "record_table", 10),
    "deals": ("hubspot", "deal", PER_EVENT, "log", 10),
    "repositories": ("github", "repository", PROJECTION, "log", 20),
    "pushes": ("github", "push", PER_EVENT, "log", 10),
    "orders": ("standard_webhooks", "order", PROJECTION, "log", 15),
    "mails": ("standard_webhooks", "mail", PER_EVENT, "log", 5),
}
"""Route key → pack, source type, mode, flow, and how many of a group's blocks it has. A pack's blocks are a multiple of ten."""
ERRORS: Final = (
    "HTTPStatus: 503 Service Unavailable for record #",
    "ReadTimeout: no answer within 30 s for record #",
    "KeyError: 'propertyValue'",
    "ValueError: record # has no owner",
    "ConnectError: connection refused by billing.example.com",
    "HTTPStatus: 429 Too Many Requests after # requests",
    "IntegrityError: (1062, \"Duplicate entry '#' for key 'email'\")",
    "HTTPStatus: 404 Not Found: contact #",
    "DecodeError: invalid start byte in record #",
    "PermissionError: token of portal # was revoked",
    "AssertionError: total of order # is negative",
    "RuntimeError: flow gave no answer",
)


class HistoryRefused(RuntimeError):
    """The database or the sizes are none that a history can be made of; the message says why."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much: `work` and `dead` are exact, and so is `events` with the replays' own."""

    events: int
    work: int
    dead: int

    @property
    def replays(self) -> int:
        """A tenth of the dead letters, in hundreds; each makes an event and a work item more."""
        return self.dead // 1000 * BLOCKS

    @property
    def groups(self) -> int:
        return (self.work - self.replays) // BLOCKS

    @property
    def tail(self) -> int:
        """The newest groups, of which most work is live."""
        return max(2, self.groups // 10)

    @property
    def per(self) -> int:
        """Events of a block."""
        return (self.events - self.replays) // (self.groups * BLOCKS)

    @property
    def ended(self) -> int:
        return (self.groups - self.tail) * BLOCKS

    @property
    def cold(self) -> int:
        """Sources of each block that is not hot: its groups take them in turn, so that each has one in the newest groups."""
        return max(self.groups // 5, self.tail)

    def check(self) -> None:
        """Raises HistoryRefused for sizes that do not go together."""
        if self.work < 4 * BLOCKS or self.work % BLOCKS:
            raise HistoryRefused(f"--work must be a multiple of {BLOCKS} and at least {4 * BLOCKS}")
        if self.events < self.work:
            raise HistoryRefused("--events must be at least --work (each work item has an event)")
        if self.groups < 4 or not 12 <= self.dead <= self.ended // 2:
            raise HistoryRefused(f"--dead must be 12 to {max(self.ended // 2, 0)}, half of the finished work")
