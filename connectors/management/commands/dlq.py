"""`dlq list / show / replay / discard`: dead letters, by WorkId or by filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from connectors import audited, dead_letters
from connectors.audit_log import cli_actor
from connectors.dead_letters import Candidate, DeadLetter
from connectors.operations_command import OperationsCommand, first_line
from connectors.work_filters import UnknownName, WorkFilter, moment
from projection.cli import DONE, FINDINGS, iso, table
from projection.discard import preview_discards
from projection.refusals import Refused


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
        self.emit({"dead_letters": rows, "truncated": len(found) > limit}, _table(found[:limit]))
        return DONE

    def replay(self, *, dry_run: bool, reason: str, retarget: bool, **options: Any) -> int:
        bulk = self._chosen(options, unreplayed=True)
        act = (
            dead_letters.preview(bulk, retarget=retarget)
            if dry_run
            else partial(audited.replay, actor=cli_actor(), reason=reason, retarget=retarget)
        )
        outcome = dead_letters.replay_all(bulk, act)
        answer = {
            "replayed": [asdict(one) for one in outcome.replayed],
            "refused": [asdict(one) for one in outcome.refused],
            "deferred": [asdict(one) for one in outcome.deferred],
        }
        would = "would be replayed" if dry_run else "replayed"
        lines = [f"{would}: {one.work_id}" + (f" as {one.replay_work_id}" * (not dry_run)) for one in outcome.replayed]
        lines += [f"refused: {one.id}: {one.reason}" for one in outcome.refused]
        lines += [f"deferred: {one.id}: {one.reason}" for one in outcome.deferred]
        lines.append(f"{len(outcome.replayed)} {would}, {len(outcome.refused)} refused, {len(outcome.deferred)} deferred")
        self.emit({**answer, "dry_run": dry_run}, lines)
        return FINDINGS if outcome.refused else DONE

    def discard(self, *, dry_run: bool, reason: str, **options: Any) -> int:
        bulk = self._chosen(options, unreplayed=False)
        actor = cli_actor()
        discarded: list[dict[str, str]] = []
        refused: list[Refused] = []
        preview = preview_discards([one.work_id for one in bulk]) if dry_run else {}
        for one in bulk:
            outcome = preview[one.work_id] if dry_run else audited.discard(one.work_id, actor=actor, reason=reason)
            if isinstance(outcome, Refused):
                refused.append(outcome)
            else:
                discarded.append(asdict(outcome))
        would = "would be discarded" if dry_run else "discarded"
        lines = [f"{would}: {one['work_id']}" for one in discarded] + [f"refused: {one.id}: {one.reason}" for one in refused]
        lines.append(f"{len(discarded)} {would}, {len(refused)} refused")
        self.emit({"discarded": discarded, "refused": [asdict(one) for one in refused], "dry_run": dry_run}, lines)
        return FINDINGS if refused else DONE

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
