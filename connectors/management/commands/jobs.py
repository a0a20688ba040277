"""`jobs list / show / pause / resume / cancel / throttle / run`: bulk replays and discards, which `dlq … --job` starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from connectors.audit_log import cli_actor
from connectors.management.operations_command import job_answer, job_line
from connectors.operations import bulk_jobs
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobRow
from projection.cli import DONE, FINDINGS, HeadraceCommand, cut, iso, refusal, table
from projection.refusals import Refused

Change = Callable[..., JobRow | Refused]


class Command(HeadraceCommand):
    help = "Shows bulk replays and discards; pauses, resumes, cancels or throttles them."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        sub = self.add_verb(verbs, "list", self.list_jobs, "list bulk jobs, newest first")
        sub.add_argument("--limit", type=int, default=20, help="maximum number of rows (default: %(default)s)")
        sub = self.add_verb(verbs, "show", self.show, "show a job and the results of its items, in lane order")
        sub.add_argument("job_id", metavar="JOB", type=int)
        sub.add_argument("--state", choices=[state.value for state in ItemState], help="only items in this state")
        sub.add_argument("--limit", type=int, default=100, help="maximum number of items, 0 = all (default: %(default)s)")
        for name, perform, description in (
            ("pause", self.pause, "pause a job after its current step"),
            ("resume", self.resume, "resume a paused job"),
            ("cancel", self.cancel, "cancel a job; what is done stays done, the rest is skipped"),
            ("throttle", self.throttle, "change a job's rate"),
        ):
            sub = self.add_verb(verbs, name, perform, description)
            sub.add_argument("job_id", metavar="JOB", type=int)
            sub.add_argument("--reason", default="", help="reason, for the audit log")
            if name == "throttle":
                sub.add_argument("--rate", type=int, required=True, help="items per second, 0 = no limit")
        sub = self.add_verb(verbs, "run", self.run, "run a job's steps in this process too, until it ends or has to wait")
        sub.add_argument("job_id", metavar="JOB", type=int)

    def list_jobs(self, *, limit: int, **_options: Any) -> int:
        if limit < 1:
            raise CommandError("--limit must be 1 or more.")
        found = jobs.newest(limit + 1)
        rows = [
            (job.id, job.kind, job.state, job.total, job.done, job.refused, job.deferred, job.actor, iso(job.created))
            for job in found
        ]
        lines = table(["job", "kind", "state", "total", "done", "refused", "deferred", "actor", "created"], rows[:limit])
        more = len(found) > limit
        self.emit({"jobs": [job_answer(job) for job in found[:limit]], "truncated": more}, cut(lines, more))
        return DONE

    def show(self, *, job_id: int, state: str | None, limit: int, **_options: Any) -> int:
        job = jobs.find(job_id)
        if job is None:
            return self._refuse(Refused(str(job_id), "not_found", f"there is no job {job_id}"))
        states = (ItemState(state),) if state else tuple(ItemState)
        items = jobs.items(job_id, states, limit=limit + 1) if limit else list(jobs.all_items(job_id, states))
        shown = items[:limit] if limit else items
        answers = [
            {
                "work_id": item.work_id,
                "state": item.state,
                "code": item.code,
                "reason": item.reason,
                "replay_work_id": item.replay_work_id,
            }
            for item in shown
        ]
        rows = [(item.work_id, item.state, item.code, item.replay_work_id or item.reason) for item in shown]
        more = len(items) > len(shown)
        lines = [job_line(job), *table(["work id", "state", "code", "result"], rows)]
        self.emit({"job": job_answer(job), "items": answers, "truncated": more}, cut(lines, more))
        return DONE

    def pause(self, **options: Any) -> int:
        return self._change(bulk_jobs.pause, options)

    def resume(self, **options: Any) -> int:
        return self._change(bulk_jobs.resume, options)

    def cancel(self, **options: Any) -> int:
        return self._change(bulk_jobs.cancel, options)

    def throttle(self, *, rate: int, **options: Any) -> int:
        try:
            return self._change(bulk_jobs.throttle, options, rate)
        except ValueError as wrong:
            raise CommandError(f"--rate: {wrong}.") from None

    def run(self, *, job_id: int, **_options: Any) -> int:
        return self._tell(bulk_jobs.run(job_id) or Refused(str(job_id), "not_found", f"there is no job {job_id}"))

    def _change(self, change: Change, options: dict[str, Any], *values: int) -> int:
        return self._tell(change(options["job_id"], *values, actor=cli_actor(), reason=options["reason"]))

    def _tell(self, answer: JobRow | Refused) -> int:
        if isinstance(answer, Refused):
            return self._refuse(answer)
        self.emit({"job": job_answer(answer)}, [job_line(answer)])
        return DONE

    def _refuse(self, refused: Refused) -> int:
        self.emit({"refused": [refusal(**asdict(refused))]}, [refused.reason])
        return FINDINGS
