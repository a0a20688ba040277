"""Which items count as started: it is written down before a flow begins, so that of a lost worker it is known what it had started
(docs/protocol.md#rescue).

A statement for each start would cost a quick flow more than it does itself. So items of flows that were not slow here, and of atomic
flows, which run one after another, are noted by the claim itself; each of them runs apart once if their worker is lost. What is slow is
noted when it starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from projection import flows
from projection.database.catalogue import execute
from projection.database.transactions import run_unit
from projection.flows import Flow
from projection.limits import route_limits

SLOW_SECONDS: Final = 0.1
"""A flow whose newest attempt took so long is slow."""

_took: Final[dict[str, float]] = {}
"""Flow → seconds of its newest attempt in this process."""


def took(flow: Flow, seconds: float) -> None:
    """An attempt of the flow has ended after so long."""
    _took[flow.name] = seconds


def is_slow(flow: Flow) -> bool:
    """Whether its items may wait for a thread long after their claim, as far as this process knows."""
    return not flow.atomic and _took.get(flow.name, 0.0) >= SLOW_SECONDS


def started_by_claim(route_ids: Iterable[int]) -> set[int]:
    """The routes of which an item counts as started when it is claimed."""
    terms = (route_limits.find(route_id) for route_id in set(route_ids))
    known = ((one.route_id, flows.find(one.flow_name)) for one in terms if one is not None)
    return {route_id for route_id, flow in known if flow is not None and not is_slow(flow)}


def note(item_id: int, token: str) -> None:
    """The item under this lease starts now. One statement, committed by itself. Raises the database's error."""
    run_unit("start", lambda: execute("note_start", id=item_id, token=token), one_statement=True)


def forget() -> None:
    """What this process has measured (tests)."""
    _took.clear()
