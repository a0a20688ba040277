"""`lanes list / show / hold / release`: what waits in which order, and an operator's brake."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from connectors.audit_log import cli_actor
from connectors.management.pause_verbs import moment
from connectors.operations import verbs
from connectors.operations.lane_names import NamedLane, find_lanes
from connectors.operations.traced import TracedItem
from connectors.operations.work_ids import short
from projection.cli import DONE, FINDINGS, HeadraceCommand, cut, refusal, seconds, table
from projection.inspection import lane_reads
from projection.inspection.lane_reads import Lane, Waiting
from projection.inspection.why import why_lane
from projection.refusals import Refused

QUEUE_SHOWN: Final = 50


class Command(HeadraceCommand):
    help = "Lists lanes, shows why one is not moving, holds and releases them."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        sub = self.add_verb(verbs, "list", self.list_lanes, "list lanes with open work, oldest item first, then idle ones on hold")
        sub.add_argument("--blocked", action="store_true", help="only lanes with blocked items")
        sub.add_argument("--held", action="store_true", help="only lanes on hold")
        sub.add_argument("--limit", type=int, default=50, help="maximum number of rows (default: %(default)s)")
        for name, perform, description in (
            ("show", self.show, "show the queue of a lane, and why it is not moving"),
            ("hold", self.hold, "hold a lane: no work of it starts until it is released; running work finishes"),
            ("release", self.release, "release a held lane; its work starts again"),
        ):
            sub = self.add_verb(verbs, name, perform, description)
            sub.add_argument(
                "lane",
                metavar="LANE",
                help="a source lane such as contact:42, a target mutation lane, or a lane's key (see `lanes list`)",
            )
            if name != "show":
                sub.add_argument("--reason", default="", help="reason, for the audit log")
            if name == "hold":
                sub.add_argument("--until", default=None, metavar="TIME", help="release automatically: 2h, or 2026-11-30T08:00:00Z")

    def list_lanes(self, *, blocked: bool, held: bool, limit: int, **_options: Any) -> int:
        if limit < 1:
            raise CommandError("--limit must be 1 or more.")
        page = lane_reads.lane_page(lane_reads.HELD if held else "", size=limit, blocked=blocked)
        lanes, truncated = list(page.lanes), page.has_next
        if not (held or blocked or truncated):  # a hold outlives the work of its lane
            holds = lane_reads.lane_page(lane_reads.HELD, size=limit)
            lanes += [lane for lane in holds.lanes if lane.head is None]
            truncated = holds.has_next or len(lanes) > limit
        waiting = lane_reads.waiting([lane.key for lane in lanes])
        found = [_summary(lane, waiting.get(lane.key)) for lane in lanes[:limit]]
        self.emit({"lanes": found, "truncated": truncated}, cut(_table(found), truncated))
        return DONE

    def show(self, *, lane: str, **_options: Any) -> int:
        named = find_lanes(lane)
        if not named:
            return self._not_found(lane)
        keys = [one.lane_key for one in named]
        heads, holds, waiting = lane_reads.heads_of(keys), lane_reads.holds_of(keys), lane_reads.waiting(keys)
        shown = []
        for one in named:
            key = one.lane_key
            summary = _summary(Lane(0, key, one.namespace, one.lane, heads.get(key), 0, holds.get(key)), waiting.get(key))
            items = [asdict(TracedItem.of(item)) for item in lane_reads.front(key, QUEUE_SHOWN, with_queued=False)]
            shown.append({**summary, "why": asdict(why_lane(key)), "items": items})
        self.emit({"lanes": shown}, _detail_lines(shown))
        return DONE

    def hold(self, *, lane: str, reason: str, until: str | None, **_options: Any) -> int:
        because = reason or "held from the command line"
        named = self._the_one(lane)
        if named is None:
            return self._not_found(lane)
        refused = verbs.hold(named, actor=cli_actor(), reason=because, release_at=moment(until))
        if refused is not None:
            return self._refuse("held", refused)
        self.emit({"held": [asdict(named)], "refused": []}, [f"held: {named.lane}"])
        return DONE

    def release(self, *, lane: str, reason: str, **_options: Any) -> int:
        named = self._the_one(lane)
        if named is None:
            return self._not_found(lane)
        refused = verbs.release(named, actor=cli_actor(), reason=reason)
        if refused is not None:
            return self._refuse("released", refused)
        self.emit({"released": [asdict(named)], "refused": []}, [f"released: {named.lane}"])
        return DONE

    def _the_one(self, text: str) -> NamedLane | None:
        """The lane that the text names; None when there is none. A change never guesses among several."""
        named = find_lanes(text)
        if len(named) > 1:
            keys = ", ".join(
                f"{one.lane_key} in {one.namespace}{f', account {one.account}' if one.account else ''}" for one in named
            )
            raise CommandError(f"{text} matches {len(named)} lanes; give the key of one: {keys}.")
        return named[0] if named else None

    def _refuse(self, done: str, refused: Refused) -> int:
        self.emit({done: [], "refused": [asdict(refused)]}, [refused.reason])
        return FINDINGS

    def _not_found(self, text: str) -> int:
        reason = f"Lane {text} has no stored work and no hold. Check the name with `lanes list`."
        self.emit({"lanes": [], "refused": [refusal(text, "not_found", reason)]}, [reason])
        return FINDINGS


def _summary(lane: Lane, waiting: Waiting | None) -> dict[str, Any]:
    """`running` is the WorkId that holds the lane; `depth` and `blocked` leave queued successors out."""
    holder = lane.head if lane.head is not None and lane.head.lane_holder_key else None
    hold = lane.hold
    return {
        "lane_key": lane.key,
        "namespace": lane.namespace,
        "account": lane.account,
        "lane": lane.name,
        **asdict(waiting or Waiting()),
        "running": holder and holder.work_id,
        "running_state": holder and holder.state,
        "hold": hold and {"by": hold.held_by, "at": hold.held_at, "reason": hold.reason},
    }


def _table(found: list[dict[str, Any]]) -> list[str]:
    plain = ("lane", "account", "namespace", "depth", "blocked")
    return table(
        [*plain, "oldest", "running", "state", "held by", "key"],
        [
            (
                *(lane[name] for name in plain),
                seconds(lane["oldest"]),
                short(lane["running"]),
                lane["running_state"],
                lane["hold"]["by"] if lane["hold"] else "",
                lane["lane_key"],
            )
            for lane in found
        ],
    )


def _detail_lines(shown: list[dict[str, Any]]) -> Iterator[str]:
    for lane in shown:
        yield f"{lane['lane']} in {lane['namespace']}: {lane['depth']} open, {lane['blocked']} blocked ({lane['lane_key']})"
        yield lane["why"]["sentence"]
        yield from table(
            ["work id", "state", "sequence", "flow", "scheduled for", "attempts"],
            [
                (short(i["work_id"]), i["state"], i["ordinal"], i["flow"], seconds(i["run_after"]), i["attempts"])
                for i in lane["items"]
            ],
        )
