"""What is said of a stage is a function of its oldest due row, its last movement and who is alive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ops_ui.monitoring.progress import (
    EXECUTE,
    RESTART_SECONDS,
    ROUTE,
    STUCK_ROUTER_SECONDS,
    STUCK_WORKERS_SECONDS,
    Due,
    Finding,
    Stage,
    in_words,
    judge,
)

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIMIT = 900


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def found(stage: str, waits: float | None, *, moved: float | None = None, alive: int = 1) -> Finding | None:
    since = None if waits is None else ago(waits)
    queue_class = "" if stage == ROUTE else "bulk"
    return judge(Stage(Due(stage, queue_class, since), None if moved is None else ago(moved), alive), NOW, LIMIT)


@pytest.mark.parametrize("stage", [ROUTE, EXECUTE])
def test_where_nothing_is_due_all_is_well_whoever_lives(stage: str) -> None:
    assert found(stage, None, alive=0) is None
    assert found(stage, None, moved=10_000) is None


@pytest.mark.parametrize(("stage", "code"), [(ROUTE, "no_router"), (EXECUTE, "no_worker")])
def test_nobody_is_there(stage: str, code: str) -> None:
    assert found(stage, RESTART_SECONDS, alive=0) is None, "a restart takes its time"
    finding = found(stage, RESTART_SECONDS + 1, alive=0)
    assert finding is not None
    assert (finding.kind, finding.code) == ("progress", code)


@pytest.mark.parametrize(
    ("stage", "limit", "code"), [(ROUTE, STUCK_ROUTER_SECONDS, "router_stuck"), (EXECUTE, STUCK_WORKERS_SECONDS, "workers_stuck")]
)
def test_they_are_there_and_nothing_moves(stage: str, limit: float, code: str) -> None:
    assert found(stage, limit, moved=10_000) is None
    assert found(stage, limit + 1, moved=limit - 1) is None, "something moved meanwhile"
    for moved in (None, limit + 1, 10_000):
        finding = found(stage, limit + 1, moved=moved)
        assert finding is not None
        assert (finding.kind, finding.code) == ("progress", code)


def test_stuck_counts_from_the_moment_at_which_work_was_due() -> None:
    """An idle night before it is no standstill."""
    assert found(EXECUTE, 10, moved=50_000) is None


@pytest.mark.parametrize(("stage", "code"), [(ROUTE, "receipts_too_old"), (EXECUTE, "work_too_old")])
def test_things_move_but_one_waits_too_long(stage: str, code: str) -> None:
    assert found(stage, LIMIT, moved=1) is None
    finding = found(stage, LIMIT + 1, moved=1)
    assert finding is not None
    assert (finding.kind, finding.code) == ("age", code)
    assert "15 min" in finding.reason


def test_the_reason_names_the_queue_class_and_the_way_out() -> None:
    finding = found(EXECUTE, 3600, alive=0)
    assert finding is not None
    assert "bulk" in finding.reason
    assert "script/server" in finding.reason


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (119.9, "120 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h")])
def test_a_wait_in_words(seconds: float, text: str) -> None:
    assert in_words(seconds) == text
