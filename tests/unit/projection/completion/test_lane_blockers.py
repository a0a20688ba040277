"""Which rows of a lane keep later ones waiting, decided on values alone (docs/protocol.md#blocked)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from projection.completion.lanes import blocks, still_blocking
from projection.rows import LaneRow, WorkRow
from projection.states import TERMINAL, State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
LOCKED = WorkRow(
    id=11, work_id="evt:a", projection_key=None, active_key=None, replay_of_work_id=None, event_id=5, namespace="default",
    execution_class="per_event", lane_key="lane", lane_position=3, lane_ordinal=4, event_created=NOW, delivery_sequence=0,
    state=State.PENDING, run_after=NOW, attempts=0, max_attempts=12, lease_token=None, claimed_at=None, scope_key="s" * 64,
    lease_expires_at=None, created=NOW, source_lane="contact:7", discarded_at=None, terminal_at=None,
)  # fmt: skip
SEEN = LaneRow(id=11, lane_key="lane", state=State.PENDING, position=3, run_after=NOW)


@pytest.mark.parametrize("run_after", [NOW - TICK, NOW, NOW + TICK], ids=["past", "now", "ahead"])
@pytest.mark.parametrize("state", list(State))
def test_what_runs_waits_to_retry_or_is_due_blocks(state: State, run_after: datetime) -> None:
    is_due = run_after <= NOW
    expected = {State.PROCESSING: True, State.RETRY: True, State.PENDING: is_due}.get(state, False)
    assert blocks(state, run_after, NOW) is expected


def test_a_candidate_that_still_blocks_is_named_by_its_locked_place() -> None:
    assert still_blocking([SEEN], {11: LOCKED}, NOW) == {"lane": (3, 11)}


@pytest.mark.parametrize(
    "locked",
    [
        {},
        {5: LOCKED},
        {11: replace(LOCKED, run_after=NOW + TICK)},
        {11: replace(LOCKED, state=State.RETRY, projection_key="k", active_key=None)},
        *({11: replace(LOCKED, state=state)} for state in [State.BLOCKED, *sorted(TERMINAL)]),
    ],
)
def test_a_candidate_that_is_gone_ended_or_settles_when_it_is_locked_blocks_nothing(locked: dict[int, WorkRow]) -> None:
    other = replace(LOCKED, id=12, lane_key="other", state=State.RETRY)
    candidates = [SEEN, replace(SEEN, id=12, lane_key="other")]
    assert still_blocking(candidates, {**locked, 12: other}, NOW) == {"other": (3, 12)}
