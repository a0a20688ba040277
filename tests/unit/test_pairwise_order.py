"""Order of two events and of many: by admission, and by ingress time only where a row has no ordinal (protocol 3)."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta

import pytest

from projection.order import Membership, Place, latest, precedes, replay_order

START = datetime(2026, 1, 1, tzinfo=UTC)


def place(event_id: int, ordinal: int = 0, *, second: float = 0.0, sequence: int = 0) -> Place:
    return Place(event_id, ordinal, START + timedelta(seconds=second), sequence)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(place(9, 1, second=5), place(1, 2), id="ordinals decide against time and id"),
        pytest.param(place(1, 4, second=5), place(2, 4), id="ids decide equal ordinals"),
        pytest.param(place(9, 0), place(1, 0, second=1), id="time decides without ordinals"),
        pytest.param(place(9, 0), place(1, 0, sequence=1), id="then the sequence in its delivery"),
        pytest.param(place(1, 0), place(2, 0), id="then the id"),
        pytest.param(place(1, 7), place(2, 0, second=1), id="one ordinal is none"),
        pytest.param(place(1, 0), place(2, 7, second=0.000001), id="to the microsecond"),
    ],
)
def test_exactly_one_of_two_rows_precedes(earlier: Place, later: Place) -> None:
    assert precedes(earlier, later)
    assert not precedes(later, earlier)


def test_nothing_precedes_itself() -> None:
    assert not precedes(place(1, 1), place(1, 1))


def test_latest_is_the_last_in_admission_whatever_the_sequence() -> None:
    rows = [place(n, n, second=-n) for n in range(1, 6)]
    for shuffled in itertools.permutations(rows):
        assert latest(shuffled) == rows[-1]


def test_replay_order_follows_every_pairwise_edge_where_there_is_no_cycle() -> None:
    rows = [place(1, 1), place(2, 0, second=1), place(3, 2, second=2), place(4, 0, second=3)]
    for shuffled in itertools.permutations(rows):
        assert replay_order(shuffled) == rows


def test_a_true_cycle_falls_back_to_ingress_time() -> None:
    a, b, c = place(1, 1, second=2), place(2, 2, second=0), place(3, 0, second=1)
    assert (precedes(a, b), precedes(b, c), precedes(c, a)) == (True, True, True)
    assert replay_order([a, b, c]) == [b, c, a]


def test_replay_order_is_a_permutation_of_any_mix() -> None:
    chance = random.Random(7)
    for _ in range(200):
        ordinals = chance.sample(range(1, 30), 6)
        rows = [
            place(n, chance.choice([0, ordinals[n]]), second=chance.randrange(4), sequence=chance.randrange(2)) for n in range(6)
        ]
        assert sorted(replay_order(rows), key=lambda row: row.event_id) == rows


def test_membership_of_numbered_rows_is_the_usual_range() -> None:
    selections = [place(n, n) for n in (3, 5, 9)]
    membership = Membership(selections)
    owners = {n: membership.owner(place(n, n)) for n in range(1, 11)}
    assert owners == {
        **dict.fromkeys((1, 2, 3), selections[0]),
        **dict.fromkeys((4, 5), selections[1]),
        **dict.fromkeys((6, 7, 8, 9), selections[2]),
        10: None,
    }
