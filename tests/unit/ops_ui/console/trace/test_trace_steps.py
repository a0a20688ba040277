"""The steps of a way and the time between them: pure functions of traced rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from connectors.operations.trace import Trace
from connectors.operations.traced import TracedEvent, TracedFailure, TracedItem, TracedReceipt
from ops_ui.console.trace.steps import WAYS_SHOWN, Way, ways

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def receipt(**members: Any) -> TracedReceipt:
    values: dict[str, Any] = dict.fromkeys(TracedReceipt.__slots__)
    values |= {"id": 7, "state": "routed", "received_at": at(0), "routed_at": at(0.5), "conflict": False, "verdicts": []}
    return TracedReceipt(**values | members)


def event(**members: Any) -> TracedEvent:
    values: dict[str, Any] = dict.fromkeys(TracedEvent.__slots__)
    values |= {"id": 1, "receipt_id": 7, "route": "contact", "created": at(0.5), "due": at(5.5), "work_id": "w"}
    return TracedEvent(**values | members)


def item(**members: Any) -> TracedItem:
    values: dict[str, Any] = dict.fromkeys(TracedItem.__slots__)
    values |= {
        "id": 1,
        "work_id": "w",
        "event_id": 1,
        "state": "processed",
        "created": at(0.5),
        "run_after": at(5.5),
        "attempts": 1,
    }
    return TracedItem(**values | members)


def failure(attempt: int, seconds: float, **members: Any) -> TracedFailure:
    values: dict[str, Any] = {
        "id": attempt,
        "work_id": "w",
        "attempt": attempt,
        "outcome": "retry",
        "error": "no\nTrace",
        "worker": None,
    }
    return TracedFailure(**values | {"at": at(seconds), "delay_ms": 5000} | members)


def found(*rows: Any, truncated: bool = False) -> Trace:
    kinds = (TracedReceipt, TracedEvent, TracedItem, TracedFailure)
    lists = [[row for row in rows if isinstance(row, kind)] for kind in kinds]
    return Trace(*lists, truncated, [])


def steps(way: Way) -> list[tuple[str, float | None, str]]:
    return [(step.name, step.wait.total_seconds() if step.wait is not None else None, step.spent) for step in way.steps]


def test_the_way_of_a_delivery_has_the_time_between_its_steps() -> None:
    done = item(first_claimed_at=at(6), claimed_at=at(6), terminal_at=at(8))
    (way,) = ways(found(receipt(), event(), done), at(100))
    assert steps(way) == [
        ("Received", None, ""),
        ("Admitted", 0.5, "routing"),
        ("Due", 5, "settling"),
        ("Started", 0.5, "waiting"),
        ("Processed", 2, "running"),
    ]
    assert way.length == timedelta(seconds=8)
    assert [name for name, _ in way.totals] == ["settling", "running", "routing", "waiting"]
    assert sum(share.width for share in way.shares) == 100
    assert way.shares[1].x == 6.25


def test_a_burst_says_how_long_it_gathered() -> None:
    last = event(id=2, created=at(3.5))
    (way,) = ways(found(receipt(), event(), last, item(event_id=2)), at(10))
    assert steps(way)[1:4] == [("Admitted", 0.5, "routing"), ("Last event admitted", 3, "collecting"), ("Due", 2, "settling")]
    assert way.events == 2


def test_retries_say_when_they_were_due_again() -> None:
    again = item(state="processed", attempts=3, run_after=at(31), first_claimed_at=at(6), claimed_at=at(32), terminal_at=at(33))
    (way,) = ways(found(receipt(), event(), again, failure(1, 7), failure(2, 25, delay_ms=6000)), at(100))
    assert steps(way)[2:] == [
        ("Due", 5, "settling"),
        ("Started", 0.5, "waiting"),
        ("Attempt 1 failed", 1, "running"),
        ("Retry due", 5, "retrying"),
        ("Attempt 2 failed", 13, "running"),
        ("Retry due", 6, "retrying"),
        ("Last attempt started", 1, "waiting"),
        ("Processed", 1, "running"),
    ]
    assert [step.note for step in way.steps if step.kind == "failed"] == ["retry: no", "retry: no"]


def test_what_waits_shows_now_and_what_is_ahead() -> None:
    waiting = item(state="retry", attempts=1, run_after=at(60), first_claimed_at=at(6), claimed_at=at(6))
    (way,) = ways(found(receipt(), event(), waiting, failure(1, 7)), at(20))
    assert steps(way)[-2:] == [("Now", 13, "waiting"), ("Retry due", 40, "waiting")]
    assert [step.is_ahead for step in way.steps][-2:] == [False, True]
    assert way.length == timedelta(seconds=20)


def test_a_wait_that_somebody_ended_is_not_shown_as_due() -> None:
    hurried = item(attempts=2, first_claimed_at=at(6), claimed_at=at(8), terminal_at=at(9))
    (way,) = ways(found(receipt(), event(), hurried, failure(1, 7)), at(100))
    assert "Retry due" not in [step.name for step in way.steps]


def test_a_replay_begins_with_its_replay() -> None:
    replayed = item(
        work_id="r", replay_of_work_id="w", created=at(50), run_after=at(50), terminal_at=at(52), first_claimed_at=at(51)
    )
    (way,) = ways(found(event(id=9, work_id="r"), replayed), at(100))
    assert [step.name for step in way.steps] == ["Replayed", "Due", "Started", "Processed"]


def test_an_event_and_a_receipt_without_work_have_a_way_too() -> None:
    unrouted = event(route=None, work_id=None)
    conflict = receipt(id=8, state="conflict", received_at=at(9))
    pending = receipt(id=9, state="quarantined", received_at=at(10), last_error="not JSON\nmore", next_attempt_at=at(90))
    made = ways(found(receipt(), conflict, pending, unrouted), at(20))
    assert [[step.name for step in way.steps] for way in made] == [
        ["Received", "Now", "Next attempt"],
        ["Received", "Conflict: not processed"],
        ["Received", "Admitted"],
    ]
    assert made[0].steps[1].note == "quarantined: not JSON"


def test_an_event_whose_work_was_left_out_says_nothing_about_it() -> None:
    orphan = event(work_id=None)
    assert ways(found(receipt(), orphan, truncated=True), at(20)) == []
    (way,) = ways(found(receipt(), orphan), at(20))
    assert way.steps[-1].note == "its work is no longer retained"


def test_only_the_newest_ways_are_told() -> None:
    many = [item(id=n, work_id=f"w{n}", created=at(n), run_after=at(n)) for n in range(WAYS_SHOWN + 5)]
    made = ways(found(*many), at(100))
    assert [way.item.work_id for way in made if way.item] == [f"w{n}" for n in range(WAYS_SHOWN + 4, 4, -1)]
