"""The audit of receipts and of the admission order, and the command."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from connectors.models import Namespace, Receipt
from connectors.operations.ingress_audit import audit_everything
from projection.database.clock import now
from tests.support import factories
from tests.support.rows import PAGES, event_row, work_row

pytestmark = pytest.mark.usefixtures("database")

COUNTS = {"item_count": 1, "event_count": 1, "duplicate_count": 0, "conflict_count": 0, "rejected_count": 0}


def names() -> list[str]:
    return [found.invariant for found in audit_everything().violations]


def test_receipts_as_they_are_left_are_right() -> None:
    pack = factories.install()
    factories.receipt(pack, b"\xff\x00 not JSON")
    factories.receipt(pack, {}, state="routed", routed_at=now(), **COUNTS)
    factories.receipt(pack, {}, state="rejected", last_error="not JSON")
    report = audit_everything()
    assert report.ok, report.violations
    assert report.checked["receipt_body"] == 3


def test_a_changed_body_is_found() -> None:
    receipt = factories.receipt(factories.install(), b'{"v":1}')
    Receipt.objects.filter(id=receipt.id).update(body=b'{"v":2}')
    assert names() == ["receipt_body"]


@pytest.mark.parametrize("lost", [*COUNTS, "routed_at"])
def test_a_routed_receipt_without_its_counts_is_found(lost: str) -> None:
    factories.receipt(factories.install(), {}, state="routed", **{"routed_at": now(), **COUNTS, lost: None})
    assert names() == ["receipt_routed"]


def test_a_pending_receipt_with_a_routed_time_is_found() -> None:
    factories.receipt(factories.install(), {}, routed_at=now())
    assert names() == ["receipt_routed"]


def test_an_ordinal_that_the_namespace_would_give_again_is_found() -> None:
    work_row(event_row(PAGES))
    Namespace.objects.update(next_enqueue_ordinal=1)
    assert names() == ["next_ordinal"]


def test_events_of_a_namespace_that_is_gone_are_found() -> None:
    work_row(event_row(PAGES))
    Namespace.objects.all().delete()
    assert names() == ["next_ordinal"]


def test_the_command_says_ok_on_a_clean_database() -> None:
    work_row(event_row(PAGES))
    out = StringIO()
    call_command("audit", "--json", stdout=out)
    answer = json.loads(out.getvalue())
    assert answer["ok"] is True
    assert answer["violations"] == []
    assert answer["checked"]["payload_hash"] == 1
    out = StringIO()
    call_command("audit", stdout=out)
    assert out.getvalue().endswith("invariants verified on 0 receipts, 1 events and 1 work items\n")


def test_the_command_exits_with_1_and_a_line_for_each_violation() -> None:
    event = event_row(PAGES)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("audit", stdout=out)
    assert ended.value.code == 1
    assert out.getvalue().splitlines() == [
        f"per_event_work  {event.id}  it has 0 work items instead of one (replays not counted)",
        "Next: run `repair --dry-run`; it shows which of these `repair` can fix.",
    ]
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("audit", "--json", stdout=out)
    answer = json.loads(out.getvalue())
    assert answer["ok"] is False
    assert answer["violations"] == [
        {"invariant": "per_event_work", "id": str(event.id), "detail": "it has 0 work items instead of one (replays not counted)"}
    ]
