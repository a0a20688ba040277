"""Which item is guilty of a lost worker: the decision for one lease that ran out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from projection.claiming.lost_workers import Leases, Verdict, judge
from projection.rows import WorkRow
from projection.states import State

NOW = datetime(2026, 1, 2, tzinfo=UTC)
BEFORE = (
    1,
    "evt:1",
    None,
    None,
    None,
    1,
    "default",
    "per_event",
    None,
    1,
    1,
    NOW,
    0,
    State.PROCESSING.value,
    NOW,
    1,
    3,
    "token",
    NOW,
)
ROW = WorkRow.of((*BEFORE, "scope", NOW, NOW, "order:1", None, None, NOW, 0, 0))
LEASES = Leases(
    owners={(1, "token"): "lost"}, held={"lost": 5}, begun=frozenset({"token"}), unexpired=frozenset(), alive=frozenset()
)


@pytest.mark.parametrize(
    ("row", "leases", "verdict"),
    [
        pytest.param({}, {}, Verdict(False), id="not started, while others of its claim were: given back, no suspect"),
        pytest.param({}, {"begun": frozenset()}, Verdict(False, 1), id="nothing of its claim had started: reading it may kill"),
        pytest.param(
            {"is_started": 1}, {}, Verdict(False, 1), id="started beside others: a suspect, and the attempt is given back"
        ),
        pytest.param({"is_started": 1}, {"held": {"lost": 1}}, Verdict(True, 2), id="started, and nothing else ran: it counts"),
        pytest.param({}, {"held": {"lost": 1}}, Verdict(False), id="alone and not started: given back"),
        pytest.param(
            {"is_started": 1, "workers_lost": 1}, {"held": {"lost": 1}}, Verdict(True, 2), id="a suspect, apart: it counts"
        ),
        pytest.param({"is_started": 1, "workers_lost": 2}, {"held": {"lost": 1}}, Verdict(True, 3), id="a second worker: proven"),
        pytest.param({"workers_lost": 1}, {"begun": frozenset()}, Verdict(True, 2), id="a suspect that kills by being read counts"),
        pytest.param(
            {"is_started": 1}, {"alive": frozenset({"lost"})}, Verdict(True), id="its worker lives: it counts, no suspect"
        ),
        pytest.param({}, {"alive": frozenset({"lost"})}, Verdict(False), id="its worker lives, it had not started: given back"),
    ],
)
def test_an_attempt_counts_for_what_had_started_and_who_kills_is_found(
    row: dict[str, object], leases: dict[str, object], verdict: Verdict
) -> None:
    assert judge(replace(ROW, **row), replace(LEASES, **leases)) == verdict  # type: ignore[arg-type]


def test_a_lost_worker_s_items_are_judged_once_the_last_of_its_leases_has_run_out() -> None:
    assert LEASES.is_decided(ROW)
    assert not replace(LEASES, unexpired=frozenset({"lost"})).is_decided(ROW)
    assert replace(LEASES, unexpired=frozenset({"lost"}), alive=frozenset({"lost"})).is_decided(ROW)
