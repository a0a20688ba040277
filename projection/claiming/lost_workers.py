"""Which item is guilty of a lost worker? The pure decision for one lease that ran out (docs/protocol.md#rescue)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from projection.rows import WorkRow

PROOF: Final = 3
"""WorkersLost of an item over which two workers were lost while nothing else was in them: it goes on by its retry policy."""


@dataclass(frozen=True, slots=True)
class Leases:
    """What was executed when the rescue began, and by whom."""

    owners: Mapping[tuple[int, str], str]
    """Lease, (item id, token) → whose."""
    held: Mapping[str, int]
    """Owner → how many items it had under leases."""
    begun: frozenset[str]
    """Tokens of claims of which an item had started."""
    unexpired: frozenset[str]
    """Owners of which a lease had not run out yet."""
    alive: frozenset[str]
    """Owners that have lately said that they live: a lease of theirs ran out for another reason than their loss."""

    def is_decided(self, row: WorkRow) -> bool:
        """Whether the item can be judged. What a lost worker had is judged together, once the last of its leases has run out (they are
        extended together, so within a heartbeat of each other): who was alone in it is seen only then.
        """
        owner = self.owner_of(row)
        return owner in self.alive or owner not in self.unexpired

    def owner_of(self, row: WorkRow) -> str:
        return self.owners.get((row.id, row.lease_token or ""), "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`counts`: the attempt does. `workers_lost`: as the item will carry it; not 0: it runs apart."""

    counts: bool
    workers_lost: int = 0

    @property
    def is_suspect(self) -> bool:
        return self.workers_lost > 0

    @property
    def is_proven(self) -> bool:
        return self.workers_lost >= PROOF


def judge(row: WorkRow, leases: Leases) -> Verdict:
    """An attempt counts for what had started. Of a lost worker's items those are suspects that had started, or all of the claim when none
    of it had: reading it may be what kills. A suspect's attempt does not count before it is known that no other item was to blame.
    """
    owner, has_started = leases.owner_of(row), bool(row.is_started)
    if owner in leases.alive:
        return Verdict(has_started, row.workers_lost)
    if row.workers_lost or (has_started and leases.held.get(owner, 0) <= 1):
        return Verdict(True, max(row.workers_lost, 1) + 1)
    is_suspect = has_started or row.lease_token not in leases.begun
    return Verdict(False, 1 if is_suspect else 0)
