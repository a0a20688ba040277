"""What `work`, `dlq` and `jobs` share: the detail of one work item, how a missing one is said, and how a bulk job is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from django.core.management.base import CommandError

from connectors.operations import work_ids
from connectors.operations.work_detail import WorkDetail, work_detail
from projection.bulk.job_rows import JobRow
from projection.cli import DONE, FINDINGS, HeadraceCommand, iso
from projection.replay.decision import not_found


class OperationsCommand(HeadraceCommand):
    """A command with a verb `show WORKID`. WorkIds are taken by any unique beginning."""

    @staticmethod
    def full(text: str) -> str:
        """The WorkId that the text is or begins. Raises CommandError for one that several items have."""
        try:
            return work_ids.full(text)
        except work_ids.Ambiguous as several:
            raise CommandError(f"{several}.") from None

    def show(self, *, work_id: str, **_options: Any) -> int:
        work_id = self.full(work_id)
        detail = work_detail(work_id)
        if detail is None:
            missing = not_found(work_id)
            self.emit({"refused": [asdict(missing)]}, [missing.reason])
            return FINDINGS
        self.emit(asdict(detail), _lines(detail))
        return DONE


def job_answer(job: JobRow) -> dict[str, Any]:
    """A bulk job as the commands print it."""
    return {
        "id": job.id,
        "kind": job.kind.value,
        "state": job.state.value,
        "filter": json.loads(job.filter),
        "retarget": job.retarget,
        "rate": job.rate,
        "actor": job.actor,
        "reason": job.reason,
        "total": job.total,
        "waiting": job.waiting,
        "done": job.done,
        "refused": job.refused,
        "deferred": job.deferred,
        "skipped": job.skipped,
        "created": job.created,
        "fixed": job.fixed,
        "finished": job.finished,
    }


def job_line(job: JobRow) -> str:
    ended = job.done + job.refused + job.skipped
    counts = f"{ended} of {job.total} ended, {job.refused} refused, {job.deferred} deferred"
    return f"job {job.id} ({job.kind}): {job.state}, {counts}{'' if job.fixed else ', still being selected'}"


LABELS: Final = {"ordinal": "sequence", "run_after": "scheduled for", "terminal_at": "ended at"}
"""Of fields whose name in JSON is not the word for people."""
LINE_CHARACTERS: Final = 100
"""An error in a list: enough to tell kinds apart; `show` prints it whole."""


def first_line(text: str | None) -> str:
    line = (text or "").partition("\n")[0]
    return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}…"


def _lines(detail: WorkDetail) -> Iterator[str]:
    yield detail.why.sentence
    for name, value in asdict(detail.work_item).items():
        if value is not None and value != "":
            yield f"{LABELS.get(name, name.replace('_', ' ')):<20}{iso(value) if hasattr(value, 'astimezone') else value}"
    yield f"{'inputs':<20}{detail.inputs.count}, sequence {detail.inputs.first_ordinal} to {detail.inputs.last_ordinal}"
    if detail.successor:
        yield f"{'successor':<20}{detail.successor.work_id}, sequence {detail.successor.ordinal}"
    for relative in detail.lineage:
        origin = f"replay of {relative.replay_of_work_id}" if relative.replay_of_work_id else "the original"
        yield f"{'lineage':<20}{relative.work_id} ({relative.state}), {origin}"
    for failure in detail.failures:
        yield f"{'attempt ' + str(failure.attempt):<20}{failure.outcome} at {iso(failure.at)}: {first_line(failure.error)}"
