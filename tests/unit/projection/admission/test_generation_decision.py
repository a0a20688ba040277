"""What a new event does to the generations of its projection: every row of the decision table (docs/protocol.md#decision)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from projection.admission.generations import Advance, Create, decide
from projection.identity import generation_work_id
from projection.order import Place
from projection.refusals import Ambiguous
from projection.rows import WorkRow
from projection.states import NONTERMINAL, TERMINAL, State

KEY = "csp:" + "a" * 64
THEN = datetime(2026, 1, 1, tzinfo=UTC)
HEAD = Place(event_id=9, ordinal=8, created=THEN, sequence=0)

UNCLAIMED = WorkRow(
    id=1, work_id=KEY, projection_key=KEY, active_key=KEY, replay_of_work_id=None, event_id=3, namespace="default",
    execution_class="projection", lane_key="l" * 64, lane_position=3, lane_ordinal=3, event_created=THEN, delivery_sequence=0,
    state=State.PENDING, run_after=THEN, attempts=0, max_attempts=12, lease_token=None, claimed_at=None, scope_key="s" * 64,
    lease_expires_at=None, created=THEN, source_lane="contact:7", discarded_at=None, terminal_at=None,
)  # fmt: skip
CLAIMED = replace(UNCLAIMED, state=State.PROCESSING, claimed_at=THEN, lease_token="t", attempts=1)
REPLAY = replace(UNCLAIMED, work_id="csp:" + "b" * 64, replay_of_work_id=KEY)
SUCCESSOR = replace(UNCLAIMED, id=2, work_id="csp:" + "c" * 64, active_key=None, state=State.BLOCKED)
LATER_ID = generation_work_id(KEY, 8, 9)


def test_the_first_generation_ever_takes_the_projection_key_as_its_id() -> None:
    assert decide(KEY, HEAD, [], is_first=True) == Create(KEY, active=True)


def test_a_later_first_generation_has_an_id_of_its_own() -> None:
    assert decide(KEY, HEAD, [], is_first=False) == Create(LATER_ID, active=True)
    assert LATER_ID != KEY


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_terminal_generations_do_not_count(state: State) -> None:
    ended = replace(UNCLAIMED, state=state, active_key=None, claimed_at=THEN)
    assert decide(KEY, HEAD, [ended], is_first=False) == Create(LATER_ID, active=True)


def test_a_terminal_generation_does_not_count_even_where_a_fault_left_it_the_active_key() -> None:
    left = replace(UNCLAIMED, state=State.PROCESSED, claimed_at=THEN)
    assert decide(KEY, HEAD, [left], is_first=False) == Create(LATER_ID, active=True)
    assert decide(KEY, HEAD, [left, SUCCESSOR], is_first=False) == Advance(SUCCESSOR, activate=True)


@pytest.mark.parametrize("state", [State.PENDING, State.BLOCKED])
def test_an_unclaimed_generation_is_advanced(state: State) -> None:
    active = replace(UNCLAIMED, state=state)
    assert decide(KEY, HEAD, [active], is_first=False) == Advance(active)


@pytest.mark.parametrize(
    "active",
    [
        CLAIMED,
        pytest.param(replace(CLAIMED, state=State.RETRY, lease_token=None), id="waits to retry"),
        pytest.param(replace(CLAIMED, state=State.RETRY, lease_token=None, attempts=0), id="handed back"),
        pytest.param(REPLAY, id="a replay nobody claimed yet"),
    ],
)
def test_a_frozen_generation_gets_a_successor(active: WorkRow) -> None:
    assert decide(KEY, HEAD, [active], is_first=False) == Create(LATER_ID, active=False)


@pytest.mark.parametrize("active", [UNCLAIMED, CLAIMED, REPLAY], ids=["unclaimed", "claimed", "replay"])
def test_a_queued_successor_is_advanced_and_the_active_one_left_alone(active: WorkRow) -> None:
    assert decide(KEY, HEAD, [active, SUCCESSOR], is_first=False) == Advance(SUCCESSOR)


def test_a_successor_alone_is_activated_because_its_handoff_was_lost() -> None:
    assert decide(KEY, HEAD, [SUCCESSOR], is_first=False) == Advance(SUCCESSOR, activate=True)


def test_more_than_one_successor_fails_closed() -> None:
    second = replace(SUCCESSOR, id=3, work_id="csp:" + "d" * 64)
    with pytest.raises(Ambiguous, match="1 active and 2 queued"):
        decide(KEY, HEAD, [CLAIMED, SUCCESSOR, second], is_first=False)


def test_more_than_one_active_generation_fails_closed() -> None:
    with pytest.raises(Ambiguous, match="2 active and 0 queued"):
        decide(KEY, HEAD, [UNCLAIMED, replace(UNCLAIMED, id=2)], is_first=False)


@pytest.mark.parametrize("state", sorted(NONTERMINAL))
def test_the_decision_depends_on_the_claim_not_on_the_state(state: State) -> None:
    claimed = replace(CLAIMED, state=state)
    assert decide(KEY, HEAD, [claimed], is_first=False) == Create(LATER_ID, active=False)
