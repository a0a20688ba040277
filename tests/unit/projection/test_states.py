"""The state table: every state says where it goes, terminal history is never reopened, and no statement does anything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from projection.admission.older_workers import ENDS
from projection.database.catalogue import catalogue
from projection.states import EXECUTED, LEGAL, NONTERMINAL, TERMINAL, State

FOLDER = Path(__file__).parents[3] / "projection"
MOVES = {
    name: text
    for name, text in catalogue(FOLDER).items()
    if text.startswith("UPDATE `_System_ConnectorWorkItem`") and re.search(r"\bState = ", text.partition("WHERE")[0])
}
"""Statements that move work items from one state to another."""
BY_PARAMETER = {"complete_claimed_work_items": EXECUTED, "end_unclaimed_work_items": frozenset(ENDS.values())}
"""What the caller may set, where the text does not say it."""


def transitions(name: str) -> set[tuple[State, State]]:
    """(before, after) of everything that a statement can do."""
    changes, _, condition = MOVES[name].partition("WHERE")
    after = re.search(r"\bState = (?:'(\w+)'|%\(state\)s)", changes)
    before = re.search(r"\bState (?:= '(\w+)'|IN \(([^)]*)\))", re.sub(r"\(State = 'retry'\) =", "", condition))
    assert after
    assert before, "nothing says which states it moves"
    ends = {State(after[1])} if after[1] else BY_PARAMETER[name]
    states = re.findall(r"\w+", before[1] or before[2])
    return {(State(state), end) for state in states for end in ends}


@pytest.mark.parametrize("name", sorted(MOVES))
def test_a_statement_makes_no_other_transition_than_the_legal_ones(name: str) -> None:
    assert [(before, after) for before, after in transitions(name) if after not in LEGAL[before]] == []


def test_every_legal_transition_is_made_by_a_statement() -> None:
    made = {transition for name in MOVES for transition in transitions(name)}
    assert made == {(before, after) for before in State for after in LEGAL[before]}


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
