"""What a bulk job is about, and what each member would come to (docs/protocol.md#bulk-jobs): bounded reads, without locks.

A job looks through the dead items by their time of death, part by part, and each part costs the same. What a member would come to is
decided by the functions that its step decides by, on rows as they are now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from django.db.models import QuerySet

from projection.bulk.job_rows import Expected, JobKind, JobRow
from projection.bulk.jobs import EARLIEST, dead_page
from projection.database.catalogue import fetch_each
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.decision import Deferred, Result, Target
from projection.replay.discard import Discarded, preview_discards
from projection.replay.preview import preview_replays

PAGE: Final = 1000
"""Members of one part, and dead items read at once."""
PAGES_A_PART: Final = 10
"""Pages of dead items that one part looks through for members at most."""

Outcome = Result | Discarded


class Bulk(Protocol):
    """What bulk jobs need of `connectors`, which is above."""

    def members(self, job: JobRow) -> QuerySet[WorkItem]:
        """The dead items that the job's filter selects, in no order."""

    def is_named(self, job: JobRow) -> bool:
        """Whether the filter names its members one by one, a page at most."""

    def targets(self, work_ids: Sequence[str]) -> Mapping[str, Target | Refused]:
        """Where each item of a retargeting job is replayed."""

    def record(self, job: JobRow, action: str, count: int) -> None:
        """An entry of the audit trail, in the step's transaction."""


@dataclass(frozen=True, slots=True)
class Part:
    """Members among the next dead items."""

    members: Mapping[int, str]
    """Id → WorkId."""
    looked_at: int
    """Dead items, members or not."""
    after: tuple[datetime, int]
    """(TerminalAt, id) of the last of them, behind which the next part begins."""
    is_last: bool


def next_part(job: JobRow, bulk: Bulk) -> Part:
    """The part behind the job's position: a page of members at most. Named members are one part, whatever died since."""
    members, after = bulk.members(job).values_list("id", "work_id"), (job.after_time or EARLIEST, job.after_id)
    if bulk.is_named(job):
        named = dict(members)
        return Part(named, len(named), after, is_last=True)
    found: dict[int, str] = {}
    looked_at = 0
    for _ in range(PAGES_A_PART):
        limit = PAGE - len(found)
        page = dead_page(after, job.created, limit)
        looked_at += len(page)
        if page:
            after = page[-1]
            found |= members.filter(id__in=[item for _, item in page])
        if len(page) < limit:
            return Part(found, looked_at, after, is_last=True)
        if len(found) >= PAGE:
            break
    return Part(found, looked_at, after, is_last=False)


def decide(job: JobRow, part: Part, bulk: Bulk) -> tuple[Mapping[str, Outcome], Expected]:
    """What each member of a part would come to as things stand, by WorkId, and their counts. About a dozen reads, whatever their number."""
    work_ids = list(part.members.values())
    outcomes, after_newer = (preview_discards(work_ids), set()) if job.kind is JobKind.DISCARD else _replays(job, work_ids, bulk)
    refused = Counter(one.code for one in outcomes.values() if isinstance(one, Refused))
    deferred = sum(isinstance(one, Deferred) for one in outcomes.values())
    possible = len(outcomes) - deferred - refused.total()
    return outcomes, Expected(possible, deferred, refused, len(after_newer), part.looked_at)


def _replays(job: JobRow, work_ids: Sequence[str], bulk: Bulk) -> tuple[Mapping[str, Outcome], set[str]]:
    targets, refused = aims(job, work_ids, bulk)
    free = [work_id for work_id in work_ids if work_id not in refused]
    told, after_newer = preview_replays(free, targets, partial(_taken, job))
    return refused | told, after_newer


def aims(job: JobRow, work_ids: Sequence[str], bulk: Bulk) -> tuple[dict[str, Target], dict[str, Refused]]:
    """Where items of a retargeting job are replayed, and which cannot be; neither of any other job."""
    found = bulk.targets(work_ids) if job.retarget and work_ids else {}
    targets = {work_id: aim for work_id, aim in found.items() if isinstance(aim, Target)}
    return targets, {work_id: aim for work_id, aim in found.items() if isinstance(aim, Refused)}


def _taken(job: JobRow, scopes: Collection[str]) -> list[tuple[str, str]]:
    """Scopes in which a member of an earlier part goes first, each with that one."""
    return fetch_each("read_taken_scope", [(job.id, scope) for scope in scopes]) if job.total else []
