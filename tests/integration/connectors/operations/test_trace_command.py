"""`trace`: the JSON form, exact numbers and times, exit code 1 for nothing."""

from __future__ import annotations

import re

import pytest

from tests.support import factories
from tests.support.commands import run, say
from tests.support.rows import PAGES, event_row, failure_row, work_row

pytestmark = pytest.mark.usefixtures("database")

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def test_the_answer_has_all_four_lists() -> None:
    receipt = factories.receipt(factories.install(), {})
    event = event_row(PAGES, source_id="18446744073709551616", delivery_id="evt-1", receipt_id=receipt.id)
    failure_row(item := work_row(event, "retry", last_error="no"), "ValueError: no\nTraceback")
    code, answer = run("trace", "evt-1")
    assert code == 0
    assert [row["id"] for row in answer["receipts"]] == [receipt.id]
    assert answer["events"][0]["source_id"] == "18446744073709551616"
    assert answer["events"][0]["route"] == "page"
    assert [(row["work_id"], row["state"]) for row in answer["work_items"]] == [(item.work_id, "retry")]
    assert answer["failures"][0]["error"] == "ValueError: no\nTraceback"
    assert ISO.fullmatch(answer["events"][0]["created"])
    assert ISO.fullmatch(answer["failures"][0]["at"])
    assert answer["truncated"] is False
    assert answer["matches"] == [{"way": "event_delivery", "kind": "event", "rows": 1, "more": False}]
    assert answer["events"][0]["work_id"] == item.work_id
    code, text = say("trace", "evt-1")
    assert code == 0
    assert item.work_id in text
    assert text.startswith("1 found by delivery id of an event\n")


def test_nothing_found_is_exit_code_1() -> None:
    code, answer = run("trace", "unknown")
    assert code == 1
    assert answer == {"receipts": [], "events": [], "work_items": [], "failures": [], "truncated": False, "matches": []}
    code, text = say("trace", "unknown")
    assert code == 1
    assert text.startswith("Nothing found for unknown.\nSearched as: delivery id of a receipt, ")


def test_a_receipt_says_why_an_item_became_no_event() -> None:
    receipt = factories.receipt(factories.install(), {})
    receipt.verdicts = '[{"item": 2, "code": "unreadable", "reason": "Unreadable: objectId is missing or empty\\nmore"}]'
    receipt.save()
    code, text = say("trace", str(receipt.id))
    assert code == 0
    assert f"receipt {receipt.id}, item 2: unreadable: Unreadable: objectId is missing or empty\n" in text
