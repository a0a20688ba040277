"""Order of two events and of many: by admission, and by ingress time only where a row has no ordinal (docs/protocol.md#order)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from projection.order import Membership, Place, latest, precedes, replay_order

START = datetime(2026, 1, 1, tzinfo=UTC)


def place(event_id: int, ordinal: int = 0, *, second: float = 0.0, sequence: int = 0) -> Place:
    return Place(event_id, ordinal, START + timedelta(seconds=second), sequence)


def mixes(count: int) -> Iterator[list[Place]]:
    """Small sets of rows with and without ordinals, out of step in every respect: ids, ordinals, times, sequences."""
    chance = random.Random(7)
    for _ in range(count):
        ids = chance.sample(range(1, 100), chance.randrange(1, 8))
        yield [
            place(one, chance.choice((0, chance.randrange(1, 9))), second=chance.randrange(4), sequence=chance.randrange(2))
            for one in ids
        ]


def cyclic_with(row: Place, rows: list[Place]) -> set[Place]:
    """The rows of one true cycle with `row`, itself included: those that it reaches along the edges and that reach it."""

    def reached(backwards: bool) -> set[Place]:
        found, waiting = {row}, [row]
        while waiting:
            here = waiting.pop()
            for other in rows:
                if other not in found and (precedes(other, here) if backwards else precedes(here, other)):
                    found.add(other)
                    waiting.append(other)
        return found

    return reached(backwards=False) & reached(backwards=True)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(place(9, 1, second=5), place(1, 2), id="ordinals decide against time and id"),
        pytest.param(place(1, 4, second=5), place(2, 4), id="ids decide equal ordinals"),
        pytest.param(place(9, 0), place(1, 0, second=1), id="time decides without ordinals"),
        pytest.param(place(9, 0, sequence=1), place(1, 0, second=1), id="time decides before the sequence"),
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
    assert not precedes(place(1), place(1))


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


def test_any_mix_is_replayed_along_its_edges_and_only_rows_of_a_cycle_by_ingress_time() -> None:
    cycles = 0
    for rows in mixes(500):
        ordered = replay_order(rows)
        assert len(ordered) == len(rows)
        for left, right in itertools.combinations(ordered, 2):
            if right in cyclic_with(left, rows):
                cycles += 1
                assert left.ingress < right.ingress
            else:
                assert precedes(left, right)
    assert cycles > 100, "the mixes have true cycles"


def test_an_event_of_any_mix_belongs_to_the_first_generation_in_history_that_is_not_before_it() -> None:
    unowned = 0
    for rows in mixes(500):
        events, selections = rows, rows[: len(rows) // 2 + 1]
        membership = Membership(selections)
        assert membership.history == replay_order(selections)
        for event in events:
            owner = next((one for one in membership.history if not precedes(one, event)), None)
            unowned += owner is None
            assert membership.owner(event) == owner
    assert unowned > 100, "the mixes have events that nothing represents"


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
