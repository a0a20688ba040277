"""`work list / show / cancel / retry-now`: work items, and why they are not running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from connectors.audit_log import cli_actor
from connectors.management.operations_command import OperationsCommand, first_line
from connectors.operations import verbs
from connectors.operations.traced import TracedItem
from connectors.operations.work_filters import UnknownName, WorkFilter, work_items
from connectors.operations.work_ids import short
from projection.cli import DONE, FINDINGS, add_confirmation, confirm, cut, demand_reason, seconds, table
from projection.refusals import Refused
from projection.states import NONTERMINAL, State


class Command(OperationsCommand):
    help = "Lists work items, shows why one is not running, cancels waiting ones, retries one now."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        sub = self.add_verb(verbs, "list", self.list_items, "list open work items, newest first; ended ones with --all or --state")
        sub.add_argument("--state", action="append", choices=[state.value for state in State], help="may be given more than once")
        sub.add_argument("--all", action="store_true", help="include work that has ended")
        sub.add_argument("--route", default="", help="key of a route, any version")
        sub.add_argument("--flow", default="", help="name of a flow, e.g. crm.contact")
        sub.add_argument("--source", default="", help="a source id, type:id (contact:42) or lane")
        sub.add_argument("--account", default="", help="account that the record belongs to")
        sub.add_argument("--limit", type=int, default=50, help="maximum number of rows (default: %(default)s)")
        sub = self.add_verb(
            verbs, "show", self.show, "show a work item: inputs, attempts, failures, replays, and why it is not running"
        )
        sub.add_argument("work_id", metavar="WORKID")
        for name, perform, description in (
            ("cancel", self.cancel, "cancel waiting work (never running work); its successor takes over"),
            ("retry-now", self.retry_now, "end the wait of an item that waits to retry"),
        ):
            sub = self.add_verb(verbs, name, perform, description)
            sub.add_argument("work_ids", metavar="WORKID", nargs="+")
            sub.add_argument("--reason", default="", help="reason, for the audit log")
            if name == "cancel":
                add_confirmation(sub)

    def list_items(self, *, state: list[str] | None, all: bool, limit: int, **options: Any) -> int:
        if limit < 1:
            raise CommandError("--limit must be 1 or more.")
        shown = tuple(State) if all else tuple(one for one in State if one in NONTERMINAL)
        states = tuple(State(one) for one in state) if state else shown
        try:
            chosen = WorkFilter(states=states, **{name: options[name] for name in ("route", "flow", "source", "account")})
            rows = work_items(chosen).order_by("-id")[: limit + 1]
            found = [TracedItem.of(row) for row in rows]
        except UnknownName as unknown:
            raise CommandError(str(unknown)) from None
        lines = table(
            ["work id", "state", "flow", "account", "lane", "attempts", "scheduled for", "error"],
            [
                (
                    short(w.work_id),
                    w.state,
                    w.flow,
                    w.account,
                    w.lane,
                    f"{w.attempts}/{w.max_attempts}",
                    seconds(w.run_after),
                    first_line(w.last_error),
                )
                for w in found[:limit]
            ],
        )
        self.emit(
            {"work_items": [asdict(item) for item in found[:limit]], "truncated": len(found) > limit},
            cut(lines, len(found) > limit),
        )
        return DONE

    def cancel(self, *, work_ids: list[str], reason: str, yes: bool, **_options: Any) -> int:
        count = len(set(map(self.full, work_ids)))
        what = f"cancels {count} work item{'' if count == 1 else 's'}"
        demand_reason(what, reason)
        confirm(what, count, yes=yes)
        return self._each("cancelled", work_ids, partial(verbs.cancel, actor=cli_actor(), reason=reason))

    def retry_now(self, *, work_ids: list[str], reason: str, **_options: Any) -> int:
        return self._each("retried", work_ids, partial(verbs.retry_now, actor=cli_actor(), reason=reason))

    def _each(self, done: str, work_ids: list[str], act: Callable[[str], object]) -> int:
        """Act on each item on its own; what `act` answers is what was done, or Refused."""
        succeeded: list[dict[str, str]] = []
        refused: list[Refused] = []
        for work_id in dict.fromkeys(map(self.full, work_ids)):
            outcome = act(work_id)
            if isinstance(outcome, Refused):
                refused.append(outcome)
            else:
                succeeded.append({"work_id": work_id})
        lines = [f"{done}: {one['work_id']}" for one in succeeded] + [f"refused: {one.id}: {one.reason}" for one in refused]
        self.emit({done: succeeded, "refused": [asdict(one) for one in refused]}, lines)
        return FINDINGS if refused else DONE
