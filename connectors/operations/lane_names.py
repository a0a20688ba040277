"""From what an operator types to a lane's key: the key itself, a source lane such as `contact:42`, or a target mutation lane."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from connectors.models import Namespace
from projection.facts import SourceLane
from projection.identity import lane_key
from projection.inspection.lane_reads import lane_names
from projection.models import LaneHold, WorkItem

ITEMS_LOOKED_AT: Final = 1000
"""Newest work items of a source lane in which its companions are looked for: a handful of companions share a source."""
_KEY: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class NamedLane:
    """A lane that exists: retained work runs in it, or it is on hold."""

    namespace: str
    lane_key: str
    lane: str
    account: str = ""


def find_lanes(text: str) -> list[NamedLane]:
    """The lanes that `text` names: none, one, or one for each account, companion and namespace that knows the source.

    Three queries, and one or two for each lane that the text may mean.
    """
    if _KEY.fullmatch(text):
        return _by_keys([text])
    candidates = {
        key
        for namespace in Namespace.objects.values_list("name", flat=True)
        if (key := lane_key(namespace, "", SourceLane(), text))
    }
    rows = WorkItem.objects.filter(source_lane=text).order_by("-id").values_list("lane_key", "source_lane")
    candidates |= {key for key, lane in rows[:ITEMS_LOOKED_AT] if lane == text and key}
    held = LaneHold.objects.filter(lane=text).values_list("lane_key", "lane")
    named = _by_keys(sorted(candidates | {key for key, lane in held if lane == text}))
    return [one for one in named if one.lane == text]  # not the target lane in which a source's item runs


def _by_keys(keys: list[str]) -> list[NamedLane]:
    """Those of the keys that exist, in a stable order."""
    found: dict[str, NamedLane] = {}
    holds = {hold.lane_key: hold for hold in LaneHold.objects.filter(lane_key__in=keys)}
    for key in keys:
        item, hold = WorkItem.objects.filter(lane_key=key).first(), holds.get(key)
        if hold is not None:
            found[key] = NamedLane(hold.namespace, key, hold.lane, item.account if item else "")
        elif item is not None:
            found[key] = NamedLane(item.namespace, key, lane_names([item])[item.id], item.account)
    return [found[key] for key in keys if key in found]
