"""`dlq list / show / replay / discard`: dead letters, by WorkId or by filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from connectors.audit_log import cli_actor
from connectors.management.operations_command import OperationsCommand, first_line, job_answer, job_line
from connectors.operations import bulk_jobs, bulk_preview, dead_letters, verbs
from connectors.operations.bulk_jobs import DEFAULT_RATE
from connectors.operations.dead_letters import IDS_A_QUERY, Candidate, DeadLetter, Outcome
from connectors.operations.work_filters import UnknownName, WorkFilter, moment
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobItemRow, JobKind, JobRow
from projection.cli import DONE, FINDINGS, cut, iso, table
from projection.database.catalogue import chunks
from projection.refusals import Refused
from projection.replay.decision import Deferred, Replayed
from projection.replay.discard import Discarded, preview_discards

ITEMS_AT_ONCE: Final = 1000
"""Dead letters of a filter that one call acts on itself; more of them become a bulk job, so that a kill loses nothing."""


class Command(OperationsCommand):
    help = "List dead letters, show one, replay or discard them one by one or by filter."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        sub = self.add_verb(verbs, "list", self.list_dead, "dead work that nobody discarded, newest first")
        _add_filters(sub)
        sub.add_argument("--limit", type=int, default=50, help="rows at most (default: %(default)s)")
        sub = self.add_verb(verbs, "show", self.show, "one dead letter: inputs, attempts, failures, lineage")
        sub.add_argument("work_id", metavar="WORKID")
        for name, perform, description in (
            ("replay", self.replay, "run dead work again as new work with its lineage"),
            ("discard", self.discard, "set dead work aside; it stays dead and is kept as evidence"),
        ):
            sub = self.add_verb(verbs, name, perform, description)
            sub.add_argument("work_ids", metavar="WORKID", nargs="*")
            _add_filters(sub)
            sub.add_argument("--all", action="store_true", help="every dead letter, where neither WorkIds nor filters are given")
            sub.add_argument("--dry-run", action="store_true", help="change nothing, say what would happen")
            sub.add_argument("--reason", default="", help="why, for the audit trail")
            sub.add_argument(
                "--job",
                action="store_true",
                help="start a bulk job and return at once; `jobs show` tells how it goes (filters only)",
            )
            sub.add_argument(
                "--rate", type=int, default=DEFAULT_RATE, help="items a second of a job, 0 = no limit (default: %(default)s)"
            )
            if name == "replay":
                sub.add_argument(
                    "--retarget", action="store_true", help="under the current version of the route, not the item's own"
                )

    def list_dead(self, *, limit: int, **options: Any) -> int:
        if limit < 1:
            raise CommandError("--limit must be 1 or more.")
        try:
            found = dead_letters.dead_letters(_filter(options), limit + 1)
        except UnknownName as unknown:
            raise CommandError(str(unknown)) from None
        rows = [
            {**asdict(one.item), "replay_work_id": one.replay_work_id, "replay_state": one.replay_state} for one in found[:limit]
        ]
        self.emit({"dead_letters": rows, "truncated": len(found) > limit}, cut(_table(found[:limit]), len(found) > limit))
        return DONE

    def replay(self, *, dry_run: bool, reason: str, retarget: bool, **options: Any) -> int:
        if options["job"]:
            return self._start(JobKind.REPLAY, options, dry_run=dry_run, reason=reason, retarget=retarget)
        bulk = self._chosen(options, unreplayed=True)
        if dry_run:
            outcome, after_newer = dead_letters.preview_all(bulk, retarget=retarget)
            return self._tell(outcome, {"dry_run": True, "after_newer": len(after_newer)})
        if len(bulk) > ITEMS_AT_ONCE and not options["work_ids"]:
            return self._replay_by_job(options, reason=reason, retarget=retarget)
        act = partial(verbs.replay, actor=cli_actor(), reason=reason, retarget=retarget)
        return self._tell(dead_letters.replay_all(bulk, act), {"dry_run": False})

    def _replay_by_job(self, options: dict[str, Any], *, reason: str, retarget: bool) -> int:
        """Too many for one call: a job, whose steps are done here until it only waits for replays to end."""
        job = self._started(JobKind.REPLAY, options, reason=reason, retarget=retarget)
        bulk_jobs.run(job.id)
        outcome = dead_letters.Outcome()
        for item in jobs.all_items(job.id):
            if item.replay_work_id:
                outcome.replayed.append(Replayed(item.work_id, item.replay_work_id))
            elif item.state is ItemState.REFUSED:
                outcome.refused.append(Refused(item.work_id, item.code, item.reason or ""))
            else:
                outcome.deferred.append(
                    Deferred(item.work_id, item.code or item.state, item.reason or f"job {job.id} goes on with it")
                )
        return self._tell(outcome, {"dry_run": False, "job": job.id})

    def _tell(self, outcome: Outcome, more: dict[str, Any]) -> int:
        answer = {
            "replayed": [asdict(one) for one in outcome.replayed],
            "refused": [asdict(one) for one in outcome.refused],
            "deferred": [asdict(one) for one in outcome.deferred],
        }
        would = "would be replayed" if more["dry_run"] else "replayed"
        lines = [f"{would}: {one.work_id}" + f" as {one.replay_work_id}" * bool(one.replay_work_id) for one in outcome.replayed]
        lines += [f"refused: {one.id}: {one.reason}" for one in outcome.refused]
        lines += [f"deferred: {one.id}: {one.reason}" for one in outcome.deferred]
        lines.append(f"{len(outcome.replayed)} {would}, {len(outcome.refused)} refused, {len(outcome.deferred)} deferred")
        lines += _warning(more.get("after_newer", 0))
        lines += [f"job {more['job']}"] if "job" in more else []
        self.emit({**answer, **more}, lines)
        return FINDINGS if outcome.refused else DONE

    def discard(self, *, dry_run: bool, reason: str, **options: Any) -> int:
        if options["job"]:
            return self._start(JobKind.DISCARD, options, dry_run=dry_run, reason=reason, retarget=False)
        bulk = self._chosen(options, unreplayed=False)
        more: dict[str, Any] = {"dry_run": dry_run}
        if dry_run:
            parts = chunks([one.work_id for one in bulk], IDS_A_QUERY)
            results = [one for part in parts for one in preview_discards(part).values()]
        elif len(bulk) > ITEMS_AT_ONCE and not options["work_ids"]:
            job = self._started(JobKind.DISCARD, options, reason=reason, retarget=False)
            bulk_jobs.run(job.id)
            more["job"] = job.id
            results = [_discarded(item) for item in jobs.all_items(job.id)]
        else:
            results = [verbs.discard(one.work_id, actor=cli_actor(), reason=reason) for one in bulk]
        refused = [one for one in results if isinstance(one, Refused)]
        discarded = [one for one in results if isinstance(one, Discarded)]
        would = "would be discarded" if dry_run else "discarded"
        lines = [f"{would}: {one.work_id}" for one in discarded] + [f"refused: {one.id}: {one.reason}" for one in refused]
        lines.append(f"{len(discarded)} {would}, {len(refused)} refused")
        self.emit({"discarded": [asdict(one) for one in discarded], "refused": [asdict(one) for one in refused], **more}, lines)
        return FINDINGS if refused else DONE

    def _start(self, kind: JobKind, options: dict[str, Any], *, dry_run: bool, reason: str, retarget: bool) -> int:
        """Start a job, or tell what one would come to."""
        if not dry_run:
            job = self._started(kind, options, reason=reason, retarget=retarget)
            self.emit({"job": job_answer(job), "dry_run": False}, [f"started {job_line(job)}"])
            return DONE
        try:
            counts = bulk_preview.preview(kind, self._selection(options), retarget=retarget)
        except UnknownName as unknown:
            raise CommandError(str(unknown)) from None
        lines = [f"{counts.total} dead letters: {counts.possible} at once, {counts.deferred} behind another of their source"]
        lines += [f"{count} refused: {code}" for code, count in sorted(counts.refused.items())] + _warning(counts.after_newer)
        self.emit({"preview": counts.members(), "dry_run": True}, lines)
        return DONE

    def _started(self, kind: JobKind, options: dict[str, Any], *, reason: str, retarget: bool) -> JobRow:
        if options["rate"] < 0:
            raise CommandError("--rate must be 0 or more.")
        chosen = self._selection(options)
        try:
            return bulk_jobs.start(kind, chosen, actor=cli_actor(), reason=reason, rate=options["rate"], retarget=retarget)
        except UnknownName as unknown:
            raise CommandError(str(unknown)) from None

    def _selection(self, options: dict[str, Any]) -> WorkFilter:
        """The filter of a job. Raises CommandError where it would be everything by mistake, or WorkIds are named."""
        chosen = _filter(options)
        if options["work_ids"]:
            raise CommandError("A job takes filters, not WorkIds.")
        if chosen.is_empty and not options["all"]:
            raise CommandError("Give a filter (--route, --error, …), or say --all.")
        return chosen

    def _chosen(self, options: dict[str, Any], *, unreplayed: bool) -> Sequence[Candidate]:
        """The fixed membership of a bulk. Raises CommandError where it would be everything by mistake, or both ids and filters."""
        chosen = _filter(options)
        work_ids: list[str] = options["work_ids"]
        if work_ids and (not chosen.is_empty or options["all"]):
            raise CommandError("Give either WorkIds or filters, not both.")
        if work_ids:
            return dead_letters.named(work_ids)
        if chosen.is_empty and not options["all"]:
            raise CommandError("Name WorkIds, give a filter (--route, --error, …), or say --all.")
        try:
            return dead_letters.candidates(chosen, unreplayed=unreplayed)
        except UnknownName as unknown:
            raise CommandError(str(unknown)) from None


def _warning(after_newer: int) -> list[str]:
    if not after_newer:
        return []
    return [f"warning: {after_newer} would run after newer work of their source has succeeded; state could go backwards"]


def _discarded(item: JobItemRow) -> Discarded | Refused:
    if item.state is ItemState.DONE:
        return Discarded(item.work_id)
    return Refused(item.work_id, item.code or item.state, item.reason or "its job did not come to it")


def _add_filters(parser: CommandParser) -> None:
    parser.add_argument("--route", default="", help="key of a route, any version")
    parser.add_argument("--pack", default="", help="name of the pack that it came in by")
    parser.add_argument("--error", default="", help="part of the last error, or the start of its fingerprint")
    parser.add_argument("--since", default="", help="died at or after: ISO 8601, or how long ago (2h, 7d)")
    parser.add_argument("--until", default="", help="died before: ISO 8601, or how long ago")
    parser.add_argument("--source", default="", help="a source id, type:id or lane")


def _filter(options: dict[str, Any]) -> WorkFilter:
    try:
        since = moment(options["since"]) if options["since"] else None
        until = moment(options["until"]) if options["until"] else None
    except ValueError as wrong:
        raise CommandError(f"{wrong}.") from None
    return WorkFilter(
        route=options["route"], pack=options["pack"], error=options["error"], source=options["source"], since=since, until=until
    )


def _table(found: list[DeadLetter]) -> list[str]:
    return table(
        ["work id", "died", "flow", "lane", "attempts", "error", "replay"],
        [
            (
                one.item.work_id,
                iso(one.item.terminal_at),
                one.item.flow,
                one.item.lane,
                one.item.attempts,
                first_line(one.item.last_error),
                f"{one.replay_state} {one.replay_work_id}" if one.replay_work_id else "",
            )
            for one in found
        ],
    )
