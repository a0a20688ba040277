"""Work under a lease, as values: what a claim took, and how its attempt ended.

The folders that claim, run and complete hand each other these, so that none of them imports another for a value. They stand on rows,
which `facts.py` knows nothing of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from projection.facts import Outage, RouteFacts, Seen
from projection.rows import EventRow, WorkRow
from projection.states import State

BEAT_SECONDS: Final = 10.0
"""How often a process says that it lives."""
ALIVE_SECONDS: Final = 3 * BEAT_SECONDS
"""A process that has been silent for so long counts as gone."""


def beat_seconds(lease_seconds: int) -> float:
    """How often a process extends its leases and says that it lives: at least three times in a lease. 0: it has no leases."""
    return min(BEAT_SECONDS, lease_seconds / 3) if lease_seconds else BEAT_SECONDS


def owner_name(host: str, pid: int, worker_id: str) -> str:
    """The LeaseOwner of a process."""
    return f"{host}:{pid}:{worker_id[:8]}"


@dataclass(frozen=True, slots=True)
class Claimed:
    """One item under our lease, with its selected event and the route version that made it."""

    item: WorkRow
    selected: EventRow
    route: RouteFacts
    starts_at: float = 0.0
    """Moment of this process's monotonic clock before which a limit forbids its start; 0: it may start at once."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one attempt ended, under which lease. `row` is the item as it was claimed; what hand-off needs of it never changes.

    `state` is a terminal state or `retry`; with `retry` the item runs again after `delay_ms`. `outcome` names the failure row
    (`retry`, `dead`, `deferred`, `timeout`, `rescued`), empty for none; `give_back` is 1 when the attempt does not count.
    """

    row: WorkRow
    token: str
    state: State
    outcome: str = ""
    error: str = ""
    delay_ms: int = 0
    give_back: int = 0
    owner: str = ""
    destination: str = ""
    frees_place: bool = False
    """Whether another attempt may begin by it, because a limit says how many run at once."""
    frames: str = ""
    """Where in the flow's code it failed."""
    seen: Outage | Seen | None = None
    """What the failure says of the destination."""
    spared: Ending | None = None
    """How it ends instead, without using the budget, when the destination turns out to be away."""
    blamed: Ending | None = None
    """How it ends instead, using the budget, when others got through to the destination since it failed before."""

    @property
    def clears_suspicion(self) -> bool:
        """Whether the flow of an item that ran apart ended by itself, so that another item than this was guilty of the lost worker."""
        return self.row.workers_lost == 1 and self.state is State.RETRY and self.outcome not in ("", "rescued", "timeout")

    @property
    def item_id(self) -> int:
        return self.row.id

    @property
    def lease(self) -> tuple[int, str]:
        """(Work item id, token)."""
        return self.row.id, self.token

    @property
    def work_id(self) -> str:
        return self.row.work_id

    @property
    def attempt(self) -> int:
        return self.row.attempts
