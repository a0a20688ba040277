"""The reason of an item is one pure decision: each reason, and which of two wins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from projection.inspection.why_decision import ERROR_CHARACTERS, Neighbour, Surroundings, explain
from projection.limits.availability import Block
from projection.models import WorkItem

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SOON = NOW + timedelta(minutes=10)
AGO = NOW - timedelta(minutes=10)
RUNNING = Neighbour("csp:running", "processing", AGO, SOON)
RETRYING = Neighbour("csp:retrying", "retry", SOON, None)


def item(state: str = "pending", **columns: Any) -> WorkItem:
    values: dict[str, Any] = {
        "work_id": "csp:1",
        "projection_key": "csp:1",
        "projection_active_key": "csp:1",
        "companion_pack": "crm",
        "companion_flow": "contact",
        "state": state,
        "run_after": AGO,
        "attempts": 2,
        "namespace": "default",
    }
    return WorkItem(**{**values, **columns})


def around(**facts: Any) -> Surroundings:
    return Surroundings(NOW, **facts)


def test_a_settling_item_says_until_when() -> None:
    why = explain(item(run_after=SOON), around())
    assert (why.code, why.sentence, why.until) == (
        "settling",
        "Settling: collecting events until 2026-01-01T12:10:00.000000Z.",
        SOON,
    )


def test_a_retry_says_until_when_and_what_failed() -> None:
    why = explain(item("retry", run_after=SOON, last_error="ValueError: no\nTraceback"), around())
    assert (why.code, why.until) == ("retry", SOON)
    assert why.sentence == "Retrying at 2026-01-01T12:10:00.000000Z after 2 attempts: ValueError: no"


def test_a_long_error_is_cut() -> None:
    why = explain(item("retry", run_after=SOON, last_error="x" * 5000), around())
    assert why.sentence.endswith("x" * ERROR_CHARACTERS + "…")


@pytest.mark.parametrize("state", ["pending", "blocked"])
def test_an_item_behind_the_holder_of_its_lane_names_it(state: str) -> None:
    why = explain(item(state), around(neighbours={"holder": RETRYING}))
    assert (why.code, why.blocking_work_id, why.until) == ("blocked", "csp:retrying", SOON)
    assert why.sentence == "Blocked by csp:retrying, which retries at 2026-01-01T12:10:00.000000Z."


def test_an_item_behind_a_due_one_names_it() -> None:
    why = explain(item("blocked"), around(neighbours={"ahead": Neighbour("evt:1", "pending", AGO, None)}))
    assert (why.code, why.blocking_work_id) == ("blocked", "evt:1")


def test_a_blocked_item_with_nothing_ahead_is_stranded() -> None:
    assert explain(item("blocked"), around()).code == "stranded"


def test_a_queued_successor_waits_for_the_running_generation() -> None:
    why = explain(item("blocked", projection_active_key=None), around(neighbours={"active": RUNNING}))
    assert (why.code, why.blocking_work_id, why.until) == ("queued", "csp:running", SOON)
    assert "which is running" in why.sentence


def test_a_queued_successor_waits_for_a_generation_that_nobody_has_claimed_yet() -> None:
    why = explain(
        item("blocked", projection_active_key=None), around(neighbours={"active": Neighbour("csp:due", "pending", AGO, None)})
    )
    assert (why.code, why.blocking_work_id, why.until) == ("queued", "csp:due", AGO)
    assert "csp:due, which is pending" in why.sentence


def test_a_successor_without_an_active_generation_says_so() -> None:
    assert explain(item("blocked", projection_active_key=None), around()).code == "handoff_lost"


def test_a_held_lane_says_who_and_why() -> None:
    why = explain(item(), around(hold=("ann", AGO, "vendor outage")))
    assert (why.code, why.sentence) == ("held", "Lane held by ann since 2026-01-01T11:50:00.000000Z: vendor outage.")


def test_a_pause_says_what_is_paused() -> None:
    why = explain(item(), around(paused=Block("route", "contact", since=AGO)))
    assert (why.code, why.sentence) == ("paused", "Route contact paused since 2026-01-01T11:50:00.000000Z.")


def test_a_pause_says_by_whom_why_and_when_it_ends() -> None:
    pause = Block("pack", "hubspot", SOON, AGO, "cli:ann", "key is changed")
    why = explain(item(), around(paused=pause))
    assert (why.sentence, why.until) == (
        "Pack hubspot paused by cli:ann since 2026-01-01T11:50:00.000000Z: key is changed. "
        "Resumes automatically at 2026-01-01T12:10:00.000000Z.",
        SOON,
    )


def test_a_parked_destination_says_why_and_until_when() -> None:
    why = explain(
        item(), around(parked=Block("destination", "hubspot-api", SOON, AGO, reason="ReceiverAway: the receiver answered 503"))
    )
    assert (why.code, why.until) == ("parked", SOON)
    assert why.sentence == (
        "Destination hubspot-api is parked (circuit open) since 2026-01-01T11:50:00.000000Z until 2026-01-01T12:10:00.000000Z: "
        "ReceiverAway: the receiver answered 503"
    )


def test_a_parked_destination_is_no_reason_for_what_waits_longer_anyway() -> None:
    parked = Block("destination", "hubspot-api", SOON)
    assert explain(item("retry", run_after=SOON + timedelta(minutes=1)), around(parked=parked)).code == "retry"
    assert explain(item("retry", run_after=SOON - timedelta(minutes=1)), around(parked=parked)).code == "parked"


@pytest.mark.parametrize(("per", "text"), [(1.0, "10 starts per second"), (60.0, "10 starts per 60 s")])
def test_a_limit_says_how_much_and_when_the_next_is_free(per: float, text: str) -> None:
    why = explain(item(), around(limited=Block("limit", "hubspot-api", SOON, number=10, seconds=per)))
    assert (why.code, why.until) == ("limited", SOON)
    assert why.sentence == f"Rate limit hubspot-api reached: {text}, next start at 2026-01-01T12:10:00.000000Z."


def test_projections_wait_for_the_activation_and_per_event_work_does_not() -> None:
    assert explain(item(), around(activated=False)).code == "not_activated"
    assert explain(item(projection_key=None, projection_active_key=None), around(activated=False)).code == "due"


def test_a_due_item_without_any_worker_says_so() -> None:
    assert explain(item(), around(workers=0)).code == "no_worker"


def test_a_due_item_whose_flow_nobody_has_names_the_flow() -> None:
    why = explain(item(), around(flow_missing=True))
    assert why.code == "no_flow"
    assert "crm.contact" in why.sentence


def test_a_due_item_over_which_a_worker_was_lost_waits_for_an_idle_worker() -> None:
    why = explain(item(workers_lost=1), around())
    assert why.code == "runs_alone"
    assert "worker that runs nothing else" in why.sentence


def test_a_due_item_with_nothing_in_its_way_is_due() -> None:
    assert explain(item(), around()).code == "due"


def test_a_processing_item_says_by_whom() -> None:
    why = explain(item("processing", claimed_at=AGO, lease_owner="host:1", lease_expires_at=SOON), around())
    assert (why.code, why.until) == ("processing", SOON)
    assert "on host:1, attempt 2" in why.sentence


def test_a_lease_that_ran_out_says_so() -> None:
    why = explain(item("processing", claimed_at=AGO, lease_owner="host:1", lease_expires_at=AGO), around())
    assert why.code == "lease_expired"


@pytest.mark.parametrize("state", ["processed", "skipped", "cancelled", "dead"])
def test_an_ended_item_says_how_and_when(state: str) -> None:
    why = explain(item(state, terminal_at=AGO, last_error="gone"), around(paused=Block("route", "contact", since=AGO)))
    assert why.code == state
    assert "2026-01-01T11:50:00.000000Z" in why.sentence
    assert ("gone" in why.sentence) == (state != "processed")


def test_a_discarded_item_says_by_whom() -> None:
    why = explain(item("dead", terminal_at=AGO, discarded_at=NOW, discarded_by="ann"), around())
    assert why.code == "discarded"
    assert "ann" in why.sentence


def test_what_an_operator_must_end_comes_before_what_time_ends() -> None:
    facts = around(paused=Block("route", "contact", since=AGO), hold=("ann", AGO, "r"), neighbours={"holder": RUNNING}, workers=0)
    assert explain(item("retry", run_after=SOON), facts).code == "paused"
    assert explain(item("pending", run_after=SOON), around(neighbours={"holder": RUNNING}, workers=0)).code == "blocked"
    assert explain(item("pending", run_after=SOON), around(workers=0)).code == "settling"
