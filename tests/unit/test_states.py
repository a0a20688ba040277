"""The state table: every state says where it goes, and terminal history is never reopened."""

from __future__ import annotations

import itertools

import pytest

from projection.states import LEGAL, NONTERMINAL, TERMINAL, State, is_legal

EXPECTED = {
    ("pending", "processing"), ("pending", "cancelled"),
    ("blocked", "pending"), ("blocked", "cancelled"),
    ("processing", "processed"), ("processing", "skipped"), ("processing", "dead"), ("processing", "retry"),
    ("retry", "processing"), ("retry", "cancelled"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), list(itertools.product(State, State)))
def test_every_transition_is_legal_or_not(before: State, after: State) -> None:
    assert is_legal(before, after) is ((before.value, after.value) in EXPECTED)


def test_every_state_is_terminal_or_not() -> None:
    assert set(LEGAL) == set(State) == NONTERMINAL | TERMINAL
    assert not NONTERMINAL & TERMINAL


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_terminal_history_is_never_reopened(state: State) -> None:
    assert LEGAL[state] == frozenset()


@pytest.mark.parametrize("state", sorted(NONTERMINAL))
def test_every_other_state_can_reach_an_end(state: State) -> None:
    reached, frontier = set(), {state}
    while frontier:
        reached |= frontier
        frontier = {after for before in frontier for after in LEGAL[before]} - reached
    assert reached & TERMINAL
