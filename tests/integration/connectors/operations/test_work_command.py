"""`work list / show / cancel / retry-now`."""

from __future__ import annotations

import pytest

from connectors.models import AuditEntry
from projection.models import WorkItem
from tests.support import factories
from tests.support.commands import run, say
from tests.support.rows import PAGES, event_row, failure_row, replay_row, work_row

pytestmark = pytest.mark.usefixtures("database")


def listed(*arguments: str) -> list[str]:
    code, answer = run("work", "list", *arguments)
    assert code == 0
    return [row["work_id"] for row in answer["work_items"]]


def test_the_list_is_newest_first_and_bounded() -> None:
    items = [work_row(event_row(PAGES), "pending") for _ in range(4)]
    assert listed() == [item.work_id for item in reversed(items)]
    code, answer = run("work", "list", "--limit", "3")
    assert (code, len(answer["work_items"]), answer["truncated"]) == (0, 3, True)


def test_the_list_shows_open_work_and_the_rest_by_option() -> None:
    ended, is_open = work_row(event_row(PAGES), "processed"), work_row(event_row(PAGES), "retry")
    dead = work_row(event_row(PAGES), "dead")
    assert listed() == [is_open.work_id]
    assert listed("--all") == [dead.work_id, is_open.work_id, ended.work_id]
    assert listed("--state", "dead") == [dead.work_id]


def test_a_work_item_is_found_by_the_short_id_of_the_list() -> None:
    item, other = work_row(event_row(PAGES), "pending"), work_row(event_row(PAGES), "pending")
    lines = say("work", "list")[1].splitlines()
    assert max(map(len, lines)) < 130
    shown = lines[2].split()[0]
    assert (len(shown), item.work_id.startswith(shown)) == (len("evt:") + 12, True)
    assert run("work", "show", shown)[1]["work_item"]["work_id"] == item.work_id
    assert run("trace", shown)[1]["work_items"][0]["work_id"] == item.work_id
    assert run("work", "cancel", shown, "--reason", "x", "--yes")[1]["cancelled"] == [{"work_id": item.work_id}]
    assert WorkItem.objects.get(id=other.id).state == "pending"


def test_a_beginning_of_several_work_ids_is_refused_with_them() -> None:
    items = [work_row(event_row(PAGES, source_id=digit), "retry", work_id=f"evt:{'ab' * 5}{digit}{'0' * 53}") for digit in "01"]
    code, answer = run("work", "retry-now", "evt:ababababab")
    assert (code, answer["error"]["reason"]) == (
        2,
        f"evt:ababababab is the beginning of {items[0].work_id}, {items[1].work_id}; give more characters.",
    )
    assert run("work", "show", "evt:ababababab1")[1]["work_item"]["work_id"] == items[1].work_id
    for unknown in ("evt:abab", "evt:ababababac", "evt:a%"):
        assert run("work", "show", unknown)[1]["refused"][0]["code"] == "not_found"


@pytest.mark.parametrize(
    "arguments",
    [("work", "list", "--source", "\udcff"), ("dlq", "replay", "\udcff"), ("lanes", "hold", "a\udcff"), ("trace", "\udcff")],
)
def test_an_argument_that_is_not_utf_8_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    code, answer = run(*arguments)
    assert code == 2
    assert "\\udcff is not UTF-8 text; type it in UTF-8." in answer["error"]["reason"]


def test_each_filter_selects() -> None:
    pack = factories.install("generic")
    orders = work_row(event_row(factories.route(pack, "orders", flow="crm.order"), source_type="order", source_id="7"), "retry")
    pages = work_row(event_row(PAGES), "processed")
    assert listed("--state", "retry") == [orders.work_id]
    assert listed("--state", "retry", "--state", "processed") == [pages.work_id, orders.work_id]
    assert listed("--route", "orders") == [orders.work_id]
    assert listed("--flow", "crm.order") == [orders.work_id]
    assert listed("--flow", "log", "--all") == [pages.work_id]
    for source in ("7", "order:7"):
        assert listed("--source", source) == [orders.work_id]
    assert listed("--source", "42", "--all") == [pages.work_id]
    assert listed("--source", "order:42") == []


def test_a_source_filter_is_exact() -> None:
    work_row(event_row(PAGES, source_id="abc ", source_lane="lane "))
    assert listed("--source", "abc") == []
    assert listed("--source", "lane") == []


@pytest.mark.parametrize("wrong", [["--route", "nothing"], ["--limit", "0"]])
def test_wrong_usage_is_exit_code_2(wrong: list[str]) -> None:
    code, answer = run("work", "list", *wrong)
    assert (code, answer["error"]["code"]) == (2, "usage")


def test_the_detail_of_a_generation() -> None:
    inputs = [event_row() for _ in range(3)]
    item = work_row(inputs[-1], "retry", lane_position=inputs[0].enqueue_ordinal)
    failure_row(item, "ValueError: no")
    successor = work_row(event_row(), "blocked")
    code, answer = run("work", "show", item.work_id)
    assert code == 0
    ordinals = [event.enqueue_ordinal for event in inputs]
    assert answer["inputs"] == {"count": 3, "first_ordinal": ordinals[0], "last_ordinal": ordinals[-1]}
    assert answer["work_item"]["work_id"] == item.work_id
    assert answer["successor"]["work_id"] == successor.work_id
    assert [row["error"] for row in answer["failures"]] == ["ValueError: no"]
    assert answer["why"]["code"] in ("retry", "not_activated")
    assert answer["lineage"] == []
    code, text = say("work", "show", item.work_id)
    assert "3, sequence" in text
    assert successor.work_id in text


def test_the_inputs_end_at_the_generation_before() -> None:
    first = work_row(event_row(), "dead")
    middle = event_row()
    second = work_row(event_row(), "processing", lane_position=middle.enqueue_ordinal)
    assert run("work", "show", second.work_id)[1]["inputs"]["count"] == 2
    assert run("work", "show", first.work_id)[1]["inputs"]["count"] == 1


def test_a_replay_has_its_roots_inputs_and_its_lineage() -> None:
    earlier = event_row()
    dead = work_row(event_row(), "dead", lane_position=earlier.enqueue_ordinal)
    again = replay_row(dead, "dead")
    third = replay_row(again)
    _, answer = run("work", "show", third.work_id)
    assert answer["inputs"]["count"] == 2
    assert [row["work_id"] for row in answer["lineage"]] == [dead.work_id, again.work_id]


def test_a_per_event_item_has_one_input() -> None:
    item = work_row(event_row(PAGES))
    assert run("work", "show", item.work_id)[1]["inputs"]["count"] == 1


def test_an_unknown_item_is_exit_code_1() -> None:
    code, answer = run("work", "show", "csp:unknown")
    assert (code, answer["refused"][0]["code"]) == (1, "not_found")


def test_retry_now_leaves_an_audit_entry_and_refuses_what_does_not_wait() -> None:
    waiting = work_row(event_row(PAGES, source_id="1"), "retry")
    pending = work_row(event_row(PAGES, source_id="2"))
    code, answer = run("work", "retry-now", waiting.work_id, pending.work_id, "--reason", "fixed")
    assert code == 1
    assert answer["retried"] == [{"work_id": waiting.work_id}]
    assert [(one["id"], one["code"]) for one in answer["refused"]] == [(pending.work_id, "not_waiting")]
    assert [(e.action, e.target, e.reason) for e in AuditEntry.objects.all()] == [("work.retry_now", waiting.work_id, "fixed")]
    code, answer = run("work", "retry-now", "ünknown")
    assert code == 1


@pytest.mark.parametrize(("forgotten", "said"), [(("--reason", "x"), "add --yes"), (("--yes",), "--reason")])
def test_cancel_asks_for_a_reason_and_a_confirmation(forgotten: tuple[str, ...], said: str) -> None:
    waiting = work_row(event_row(PAGES), "retry")
    code, answer = run("work", "cancel", waiting.work_id, *forgotten)
    assert code == 2
    assert answer["error"]["reason"].startswith("This cancels 1 work item, which cannot be undone: ")
    assert said in answer["error"]["reason"]
    assert WorkItem.objects.get(id=waiting.id).state == "retry"


def test_cancel_ends_waiting_work_and_refuses_what_runs() -> None:
    waiting = work_row(event_row(PAGES, source_id="1"), "retry")
    running = work_row(event_row(PAGES, source_id="2"), "processing")
    code, answer = run("work", "cancel", waiting.work_id, running.work_id, "ü", "--reason", "wrong", "--yes")
    assert code == 1
    assert answer["cancelled"] == [{"work_id": waiting.work_id}]
    assert [one["code"] for one in answer["refused"]] == ["processing", "not_found"]
    assert WorkItem.objects.get(id=waiting.id).state == "cancelled"
    assert AuditEntry.objects.get().action == "work.cancel"
