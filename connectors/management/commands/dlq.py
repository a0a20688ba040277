"""`dlq list / show / replay / discard / restore`: dead letters, by WorkId or by filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final, get_args

from django.core.management.base import CommandError, CommandParser

from connectors.audit_log import cli_actor
from connectors.management.operations_command import OperationsCommand, first_line, job_answer, job_line
from connectors.operations import bulk_jobs, dead_letters, verbs
from connectors.operations.bulk_jobs import DEFAULT_RATE
from connectors.operations.dead_letters import RESTORED_AT_ONCE, DeadLetter, discarded_pages
from connectors.operations.work_filters import UnknownName, WorkFilter, moment
from connectors.operations.work_ids import short
from projection.bulk import jobs
from projection.bulk.job_rows import JobKind, JobRow, JobState
from projection.bulk.membership import Outcome
from projection.cli import DONE, FINDINGS, add_confirmation, confirm, cut, demand_reason, seconds, table
from projection.database.catalogue import chunks
from projection.refusals import Refused
from projection.replay.decision import Deferred, Replayed
from projection.replay.discard import Discarded, Restored, preview_restores
from projection.replay.preview import preview_replays

DONE_WORDS: Final = {JobKind.REPLAY: "replayed", JobKind.DISCARD: "discarded"}


class Command(OperationsCommand):
    help = "Lists dead letters, shows one, replays, discards or restores them by WorkId or by filter."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        sub = self.add_verb(verbs, "list", self.list_dead, "list open dead letters (neither replayed nor discarded), newest first")
        _add_filters(sub)
        sub.add_argument(
            "--show",
            choices=get_args(dead_letters.Show),
            default="open",
            help="open (default), replayed, discarded, or all dead letters",
        )
        sub.add_argument("--limit", type=int, default=50, help="maximum number of rows (default: %(default)s)")
        sub = self.add_verb(verbs, "show", self.show, "show a dead letter: inputs, attempts, failures, replays")
        sub.add_argument("work_id", metavar="WORKID")
        for name, perform, description in (
            ("replay", self.replay, "run dead letters again, as new work items linked to them"),
            (
                "discard",
                self.discard,
                "discard dead letters: close them without a replay; `restore` reopens them until retention removes them",
            ),
        ):
            sub = self.add_verb(verbs, name, perform, description)
            _add_selection(sub)
            sub.add_argument(
                "--job",
                action="store_true",
                help="start a bulk job in the background; `jobs show` reports its progress",
            )
            sub.add_argument(
                "--rate", type=int, help=f"items per second, 0 = no limit (default: {DEFAULT_RATE}; no limit by WorkIds)"
            )
            if name == "discard":
                add_confirmation(sub)
            if name == "replay":
                sub.add_argument(
                    "--retarget", action="store_true", help="use the current version of the route instead of the item's"
                )

        _add_selection(self.add_verb(verbs, "restore", self.restore, "restore discarded dead letters: they are open again"))

    def list_dead(self, *, limit: int, show: dead_letters.Show, **options: Any) -> int:
        if limit < 1:
            raise CommandError("--limit must be 1 or more.")
        try:
            found = dead_letters.dead_letters(_filter(options), limit + 1, show)
        except UnknownName as unknown:
            raise CommandError(str(unknown)) from None
        rows = [
            {**asdict(one.item), "replay_work_id": one.replay_work_id, "replay_state": one.replay_state} for one in found[:limit]
        ]
        self.emit({"dead_letters": rows, "truncated": len(found) > limit}, cut(_table(found[:limit]), len(found) > limit))
        return DONE

    def replay(self, *, retarget: bool, **options: Any) -> int:
        return self._act(JobKind.REPLAY, retarget=retarget, **options)

    def discard(self, **options: Any) -> int:
        return self._act(JobKind.DISCARD, retarget=False, **options)

    def restore(self, *, dry_run: bool, reason: str, **options: Any) -> int:
        chosen = _chosen(options)
        if not dry_run and not reason.strip():
            raise CommandError("Give the reason for the audit log with --reason.")
        act = preview_restores if dry_run else partial(verbs.restore, actor=cli_actor(), reason=reason)
        try:
            pages = chunks(chosen.work, RESTORED_AT_ONCE) if chosen.work else discarded_pages(chosen)
            results = [outcome for page in pages for outcome in act(page).values()]
        except UnknownName as unknown:
            raise CommandError(str(unknown)) from None
        return self._report("restored", results, {"dry_run": dry_run})

    def _act(
        self, kind: JobKind, *, retarget: bool, dry_run: bool, job: bool, rate: int | None, reason: str, **options: Any
    ) -> int:
        """One dead letter by its name at once; several, or a filter, by a bulk job, whose steps are done here unless it is left alone."""
        chosen = _chosen(options)
        try:
            bulk_jobs.check_rate(rate)
        except ValueError as wrong:
            raise CommandError(f"--rate: {wrong}.") from None
        if kind is JobKind.DISCARD and not dry_run:
            demand_reason("discards dead letters", reason, lasting=False)
        if len(chosen.work) == 1 and not (dry_run or job):
            return self._act_on_one(kind, chosen.work[0], reason, retarget=retarget)
        counted = _counted(kind, chosen, retarget=retarget)
        report = self._report_counts if job else self._report_job
        if dry_run:
            try:
                return report(counted)
            finally:
                jobs.drop(counted.id)
        if kind is JobKind.DISCARD:
            _confirm(counted, yes=options["yes"])
        confirmed = bulk_jobs.confirm(counted.id, actor=cli_actor(), reason=reason, rate=rate)
        if isinstance(confirmed, Refused):
            raise CommandError(f"{confirmed.reason}.")
        return report(confirmed if job else bulk_jobs.run(confirmed.id) or confirmed)

    def _act_on_one(self, kind: JobKind, work_id: str, reason: str, *, retarget: bool) -> int:
        """At once, with the warning that its dry run gives."""
        if kind is JobKind.DISCARD:
            return self._report("discarded", [verbs.discard(work_id, actor=cli_actor(), reason=reason)], {"dry_run": False})
        _, after_newer = preview_replays([work_id])
        results = verbs.replay([work_id], actor=cli_actor(), reason=reason, retarget=retarget)
        count = len(after_newer) if any(isinstance(one, Replayed) for one in results) else 0
        return self._report("replayed", results, {"dry_run": False, "after_newer": count}, _warning(count))

    def _report_counts(self, job: JobRow) -> int:
        """What a preview counted, or a job that the cluster goes on with."""
        is_preview, expected = job.state is JobState.PREVIEW, job.expected
        left_out = [one for one in bulk_jobs.left_out(job) if isinstance(one, Refused)]
        lines = [] if is_preview else [f"started {job_line(job)}"]
        lines.append(
            f"{expected.total} dead letters: {expected.possible} start immediately, "
            f"{expected.deferred} wait for an earlier one of the same record"
        )
        lines += [f"{count} would be refused: {code}" for code, count in sorted(expected.refused.items())] + _warning(
            expected.after_newer
        )
        lines += [f"refused: {one.id}: {one.reason}" for one in left_out]
        answer: dict[str, Any] = {"preview": _preview(job), "dry_run": is_preview}
        answer |= {} if is_preview else {"job": job_answer(job)}
        answer |= {"refused": [asdict(one) for one in left_out]} if left_out else {}
        self.emit(answer, lines)
        return FINDINGS if left_out else DONE

    def _report_job(self, job: JobRow) -> int:
        """What became of each item, or would become of it."""
        is_preview = job.state is JobState.PREVIEW
        more = {"dry_run": is_preview, "after_newer": job.expected.after_newer, **({} if is_preview else {"job": job.id})}
        warning = _warning(job.expected.after_newer)
        more_lines = warning if is_preview else [*warning, f"job {job.id}"]
        return self._report(DONE_WORDS[job.kind], bulk_jobs.results(job), more, more_lines)

    def _report(
        self, word: str, results: Iterable[Outcome | Restored], more: dict[str, Any], more_lines: Sequence[str] = ()
    ) -> int:
        found = list(results)
        done = [one for one in found if isinstance(one, Replayed | Discarded | Restored)]
        refused = [one for one in found if isinstance(one, Refused)]
        deferred = [one for one in found if isinstance(one, Deferred)]
        would = f"would be {word}" if more["dry_run"] else word
        lines = [f"{would}: {one.work_id}{_replay_of(one)}" for one in done]
        lines += [f"refused: {one.id}: {one.reason}" for one in refused]
        lines += [f"deferred: {one.id}: {one.reason}" for one in deferred]
        lines.append(f"{len(done)} {would}, {len(refused)} refused, {len(deferred)} deferred")
        answer: dict[str, Sequence[Any]] = {word: done, "refused": refused, "deferred": deferred}
        self.emit({name: [asdict(one) for one in ones] for name, ones in answer.items()} | more, [*lines, *more_lines])
        return FINDINGS if refused else DONE


def _counted(kind: JobKind, chosen: WorkFilter, *, retarget: bool) -> JobRow:
    """A preview, counted to its end."""
    try:
        return bulk_jobs.count_all(bulk_jobs.make(kind, chosen, actor=cli_actor(), retarget=retarget))
    except (UnknownName, ValueError) as wrong:
        raise CommandError(f"{wrong}") from None


def _confirm(counted: JobRow, *, yes: bool) -> None:
    """Raises CommandError, and drops the preview, unless the discard of so many was confirmed."""
    count = counted.expected.possible
    try:
        confirm(f"discards {count} dead letter{'' if count == 1 else 's'}", count, yes=yes, lasting=False)
    except CommandError:
        jobs.drop(counted.id)
        raise


def _preview(job: JobRow) -> dict[str, Any]:
    expected = asdict(job.expected)
    del expected["looked_at"]
    return {"kind": job.kind.value, "total": job.expected.total, **expected}


def _replay_of(one: Replayed | Discarded | Restored) -> str:
    return f" as {one.replay_work_id}" if isinstance(one, Replayed) and one.replay_work_id else ""


def _warning(count: int) -> list[str]:
    return (
        [f"warning: {count} would run after newer work of the same record has succeeded and could overwrite it with older data"]
        if count
        else []
    )


def _add_selection(parser: CommandParser) -> None:
    parser.add_argument("work_ids", metavar="WORKID", nargs="*")
    _add_filters(parser)
    parser.add_argument("--all", action="store_true", help="select every dead letter, instead of WorkIds or filters")
    parser.add_argument("--dry-run", action="store_true", help="show what would happen; change nothing")
    parser.add_argument("--reason", default="", help="reason, for the audit log")


def _add_filters(parser: CommandParser) -> None:
    parser.add_argument("--route", default="", help="key of a route, any version")
    parser.add_argument("--pack", default="", help="name of the pack that received it")
    parser.add_argument("--error", default="", help="part of the last error, or the start of its fingerprint")
    parser.add_argument("--since", default="", help="failed at or after: ISO 8601, or how long ago (2h, 7d)")
    parser.add_argument("--until", default="", help="failed before: ISO 8601, or how long ago")
    parser.add_argument("--source", default="", help="a source id, type:id (contact:42) or lane")
    parser.add_argument("--account", default="", help="account that the record belongs to")


def _chosen(options: dict[str, Any]) -> WorkFilter:
    """What to act on. Raises CommandError where it would be everything by mistake, or both WorkIds and filters."""
    chosen, named = _filter(options), tuple(dict.fromkeys(map(OperationsCommand.full, options["work_ids"])))
    if named and (not chosen.is_empty or options["all"]):
        raise CommandError("Give either WorkIds or filters, not both.")
    if not named and chosen.is_empty and not options["all"]:
        raise CommandError("Give WorkIds, a filter (--route, --error, …) or --all.")
    return replace(chosen, work=named)


def _filter(options: dict[str, Any]) -> WorkFilter:
    try:
        since = moment(options["since"]) if options["since"] else None
        until = moment(options["until"]) if options["until"] else None
    except ValueError as wrong:
        raise CommandError(f"{wrong}.") from None
    texts = {name: options[name] for name in ("route", "pack", "error", "source", "account")}
    return WorkFilter(**texts, since=since, until=until)


def _table(found: list[DeadLetter]) -> list[str]:
    return table(
        ["work id", "failed", "flow", "account", "lane", "attempts", "error", "replay"],
        [
            (
                short(one.item.work_id),
                seconds(one.item.terminal_at),
                one.item.flow,
                one.item.account,
                one.item.lane,
                one.item.attempts,
                first_line(one.item.last_error),
                f"{one.replay_state} {short(one.replay_work_id)}" if one.replay_work_id else "",
            )
            for one in found
        ],
    )
