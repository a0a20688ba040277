"""Activation: projections wait for the whole schema, by command and at the start; what a work item does, it alone decides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection

from ops_ui.config import server_checks
from ops_ui.start import CannotStart
from ops_ui.start.prepare import _activate as activate_at_the_start
from projection.admission import activation
from projection.database import clock, older_schema
from projection.execution.worker import drain_claims
from projection.models import Event, ProjectionProtocol, WorkItem
from projection.states import State
from tests.support.commands import run
from tests.support.deliveries import change, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.workers_by_hand import ByHand, let_retries_come_due, report

pytestmark = pytest.mark.usefixtures("database")

WORK, PROTOCOL = "_System_ConnectorWorkItem", "_System_ConnectorProjectionProtocol"


def _execute(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text)


def of_source(contact: int) -> list[str]:
    """States of its work items, read without any other column."""
    return list(WorkItem.objects.filter(source_lane=f"contact:{contact}").order_by("id").values_list("state", flat=True))


@contextmanager
def without_replay_column() -> Iterator[str]:
    _execute(f"ALTER TABLE `{WORK}` RENAME COLUMN ReplayOfWorkId TO SomethingElse")
    older_schema.forget()
    try:
        yield f"{WORK}.ReplayOfWorkId"
    finally:
        _execute(f"ALTER TABLE `{WORK}` RENAME COLUMN SomethingElse TO ReplayOfWorkId")


@contextmanager
def without_protocol_table() -> Iterator[str]:
    _execute(f"RENAME TABLE `{PROTOCOL}` TO `something_else`")
    try:
        yield f"{PROTOCOL}.ProtocolVersion"
    finally:
        _execute(f"RENAME TABLE `something_else` TO `{PROTOCOL}`")


@pytest.fixture(autouse=True)
def not_activated(database: None) -> Iterator[None]:
    ProjectionProtocol.objects.all().delete()
    activation.forget()
    yield
    activation.forget()


@pytest.mark.parametrize("lacking", [without_replay_column, without_protocol_table])
def test_an_incomplete_schema_is_refused_by_both_entries_naming_what_is_missing(lacking: type) -> None:
    with lacking() as missing:
        code, answer = run("activate_projection")
        assert (code, answer["activated"]) == (1, False)
        assert missing in answer["reason"]
        with pytest.raises(CannotStart, match=missing.replace(".", r"\.")):
            activate_at_the_start()
        assert not activation.is_activated()
    assert run("activate_projection")[0] == 0
    activate_at_the_start()
    assert activation.is_activated()


@pytest.mark.parametrize("lacking", [without_replay_column, without_protocol_table])
def test_per_event_work_runs_and_projections_wait_while_the_schema_is_incomplete(lacking: type) -> None:
    ingress = open_ingress()
    ingress.route(on=("changed",))
    ingress.route("single", mode="per_event", kind="deal.action", on=("action",))
    ProjectionProtocol.objects.all().delete()
    activation.forget()
    with recording() as seen, lacking():
        ingress.admit(change(7), change(8, kind="action"))
        ingress.admit(change(7, id="twice"), change(7, id="twice"), change(8, id="again", kind="action"))
        ingress.admit(change(7, id="twice"), change(8, id="again", kind="action"))  # duplicates ask for coverage
        seen.raises.append(RuntimeError("once"))
        assert drain_claims() == 1
        let_retries_come_due()
        assert drain_claims() == 2
        assert (of_source(7), of_source(8)) == (["pending"], ["processed"] * 2)
    activation.activate("test")
    with recording():
        assert drain_claims() == 1
    assert states(7) == ["processed"]


def test_legacy_columns_of_an_event_decide_nothing_once_it_is_work() -> None:
    """Divergent legacy status, attempts, times and leases of the selected event."""
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        ingress.admit(change(7))
        Event.objects.filter(id=attempt.claimed.item.event_id).update(
            executor_owner="event", status="dead", attempts=99, next_attempt_at=clock.now() + timedelta(days=9), last_error="old",
            terminal_at=clock.now(), lease_token="old-binary", lease_expires_at=clock.now() + timedelta(days=9),
        )  # fmt: skip
        before = list(Event.objects.order_by("id").values())
        report(attempt, State.RETRY, outcome="retry", error="no", delay_ms=3_600_000)
        assert drain_claims() == 0
        assert states(7) == ["retry", "blocked"], "the late successor stays inactive"
        let_retries_come_due()
        again = ByHand().claim(1)
        assert [one.claimed.item.attempts for one in again] == [2]
        report(again[0])
        drain_claims()
        assert [inputs for _, _, inputs in seen.runs] == [[2]]
    assert states(7) == ["processed", "processed"]
    assert list(Event.objects.order_by("id").values()) == before, "and work never writes them"


def test_a_database_with_events_of_an_older_protocol_is_refused_with_the_way_out() -> None:
    open_ingress().admit(change(7))
    ProjectionProtocol.objects.update(protocol_version=1)
    activation.forget()
    code, answer = run("activate_projection")
    assert (code, answer["activated"]) == (1, False)
    assert "do not have the account in them" in answer["reason"]
    assert "docs/upgrading.md" in answer["reason"]
    with pytest.raises(CannotStart, match="new database"):
        activate_at_the_start()
    assert [message.id for message in server_checks.check_protocol(["default"])] == ["headrace.E014"]
    assert not activation.is_activated()


def test_an_empty_database_of_an_older_protocol_goes_on() -> None:
    ProjectionProtocol.objects.create(protocol_version=1, schema_fingerprint="x", activated_at=clock.now(), activated_by="before")
    assert server_checks.check_protocol(["default"]) == []
    activate_at_the_start()
    assert activation.is_activated()
    assert ProjectionProtocol.objects.get().protocol_version == activation.PROTOCOL_VERSION
