"""`dlq list / show / replay / discard / restore`, by WorkId and by filter."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from connectors.models import AuditEntry, Pack
from projection.database.clock import now
from projection.job_models import Job, JobItem
from projection.models import WorkItem
from projection.safe_text import fingerprint
from tests.support import factories
from tests.support.commands import run, say
from tests.support.rows import PAGES, event_row, replay_row, work_row

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def pack(database: None) -> Pack:
    return factories.install("generic")


def dead(pack: Pack, source_id: str, state: str = "dead", **columns: Any) -> WorkItem:
    route = factories.route(pack, f"r{source_id}")
    return work_row(event_row(route, source_id=source_id, pack_incarnation=pack.incarnation), state, **columns)


def listed(*arguments: str) -> list[str]:
    code, answer = run("dlq", "list", *arguments)
    assert code == 0
    return sorted(row["work_id"] for row in answer["dead_letters"])


def test_the_list_shows_what_is_open_and_the_rest_by_option(pack: Pack) -> None:
    replayed, discarded, is_open = dead(pack, "1"), dead(pack, "2", discarded_at=now()), dead(pack, "4")
    work_row(event_row(PAGES, source_id="3"), "processed")
    replay_row(replayed, "processed")
    assert listed() == [is_open.work_id]
    assert listed("--show", "replayed") == [replayed.work_id]
    assert listed("--show", "discarded") == [discarded.work_id]
    assert listed("--show", "all") == sorted([replayed.work_id, discarded.work_id, is_open.work_id])
    assert listed("--show", "discarded", "--source", "contact:2") == [discarded.work_id]
    assert listed("--show", "discarded", "--source", "contact:4") == []


def test_a_replayed_dead_letter_is_listed_with_its_replay(pack: Pack) -> None:
    one = dead(pack, "1")
    again = replay_row(one, "processed")
    code, answer = run("dlq", "list", "--show", "replayed")
    assert code == 0
    (row,) = answer["dead_letters"]
    assert (row["work_id"], row["replay_work_id"], row["replay_state"]) == (one.work_id, again.work_id, "processed")
    assert one.work_id[:16] in say("dlq", "list", "--show", "all")[1]


def test_a_list_that_is_cut_says_so(pack: Pack) -> None:
    dead(pack, "1")
    assert "There are more" not in say("dlq", "list", "--limit", "1")[1]
    dead(pack, "2")
    assert "There are more; use --limit COUNT to see them." in say("dlq", "list", "--limit", "1")[1]


def test_each_filter_selects(pack: Pack) -> None:
    error = "ValueError: order 12 is closed"
    one = dead(pack, "1", last_error=error, error_fingerprint=fingerprint(error))
    two = dead(pack, "2", terminal_at=now() - timedelta(days=3))
    other = factories.install("github")
    three = dead(other, "3")
    assert listed("--route", "r1") == [one.work_id]
    assert listed("--pack", "github") == [three.work_id]
    assert listed("--error", "is closed") == [one.work_id]
    assert listed("--error", fingerprint(error)[:12]) == [one.work_id]
    assert listed("--since", "2d") == sorted([one.work_id, three.work_id])
    assert listed("--until", "2d") == [two.work_id]
    assert listed("--until", "2020-01-01T00:00:00Z") == []
    assert listed("--source", "contact:2") == [two.work_id]
    assert run("dlq", "list", "--since", "yesterday")[0] == 2
    assert run("dlq", "list", "--pack", "nothing")[0] == 2


def test_replay_by_work_id_reports_each_item(pack: Pack) -> None:
    one, two = dead(pack, "1"), dead(pack, "2")
    done = dead(pack, "3", "processed")
    code, answer = run("dlq", "replay", one.work_id, two.work_id, done.work_id, "unknown", "ü", "--reason", "fixed")
    assert code == 1
    assert [row["work_id"] for row in answer["replayed"]] == [one.work_id, two.work_id]
    for row in answer["replayed"]:
        assert WorkItem.objects.get(work_id=row["replay_work_id"]).replay_of_work_id == row["work_id"]
    assert [(row["id"], row["code"]) for row in answer["refused"]] == [
        (done.work_id, "not_dead"),
        ("unknown", "not_found"),
        ("ü", "not_found"),
    ]
    assert answer["deferred"] == []
    entry = AuditEntry.objects.get(action="work.replay")
    assert (entry.target, entry.reason, entry.count) == (f"job {answer['job']}", "fixed", 2)
    code, answer = run("dlq", "replay", one.work_id)
    assert (code, answer["refused"][0]["code"]) == (1, "already_replayed")
    code, answer = run("dlq", "replay", dead(pack, "4").work_id, "--reason", "one alone")
    entry = AuditEntry.objects.get(action="work.replay", reason="one alone")
    assert (code, entry.target, "job" in answer) == (0, answer["replayed"][0]["work_id"], False)


def test_replay_goes_in_lane_order(pack: Pack) -> None:
    route = factories.route(pack, "orders")
    items = [work_row(event_row(route, source_id="1", pack_incarnation=pack.incarnation), "dead") for _ in range(3)]
    code, answer = run("dlq", "replay", *(item.work_id for item in reversed(items)))
    assert code == 0
    assert [row["work_id"] for row in answer["replayed"]] == [item.work_id for item in items]
    positions = [WorkItem.objects.get(work_id=row["replay_work_id"]).lane_position for row in answer["replayed"]]
    assert positions == sorted(positions)


def test_the_second_dead_generation_of_a_source_is_deferred(pack: Pack) -> None:
    route = factories.route(pack, "contacts", mode="projection")
    first, second = (work_row(event_row(route, pack_incarnation=pack.incarnation), "dead") for _ in range(2))
    dry = run("dlq", "replay", "--all", "--dry-run")[1]
    code, answer = run("dlq", "replay", "--all")
    assert code == 0
    assert [row["work_id"] for row in answer["replayed"]] == [first.work_id]
    assert [(row["id"], row["code"]) for row in answer["deferred"]] == [(second.work_id, "same_source")]
    assert [row["id"] for row in dry["deferred"]] == [second.work_id]


def test_a_dry_run_says_the_same_and_writes_nothing(pack: Pack) -> None:
    route = factories.route(pack, "contacts", mode="projection")
    blocked = work_row(event_row(route, pack_incarnation=pack.incarnation), "dead")
    work_row(event_row(route, pack_incarnation=pack.incarnation), "processing")
    again = dead(pack, "2")
    replay_row(again, "processed")
    gone = dead(pack, "3", discarded_at=now())
    twice = dead(pack, "6")
    replay_row(replay_row(twice, "dead"), "processed")
    fine = dead(pack, "4")
    alive = dead(pack, "5", "pending")
    ids = [item.work_id for item in (blocked, again, gone, fine, alive, twice)] + ["unknown"]
    before = WorkItem.objects.count()
    dry_code, dry = run("dlq", "replay", *ids, "--dry-run")
    assert WorkItem.objects.count() == before
    assert not AuditEntry.objects.exists()
    assert not Job.objects.exists()
    assert not JobItem.objects.exists()
    code, real = run("dlq", "replay", *ids)
    assert (dry_code, code) == (1, 1)
    assert [(row["id"], row["code"]) for row in dry["refused"]] == [(row["id"], row["code"]) for row in real["refused"]]
    assert [row["work_id"] for row in dry["replayed"]] == [row["work_id"] for row in real["replayed"]] == [fine.work_id]
    assert {row["code"] for row in real["refused"]} == {
        "active_generation",
        "already_replayed",
        "discarded",
        "not_dead",
        "not_found",
    }


def test_replay_by_filter_leaves_out_what_was_replayed_before(pack: Pack) -> None:
    one, two = dead(pack, "1", last_error="timeout"), dead(pack, "2", last_error="timeout")
    dead(pack, "3", last_error="other")
    replay_row(one, "processed")
    code, answer = run("dlq", "replay", "--error", "timeout")
    assert code == 0
    assert [row["work_id"] for row in answer["replayed"]] == [two.work_id]


@pytest.mark.parametrize("verb", ["replay", "discard", "restore"])
def test_a_bulk_never_means_everything_by_mistake(pack: Pack, verb: str) -> None:
    item = dead(pack, "1")
    assert run("dlq", verb)[0] == 2
    assert run("dlq", verb, item.work_id, "--all")[0] == 2
    assert run("dlq", verb, item.work_id, "--error", "x")[0] == 2
    assert WorkItem.objects.filter(discarded_at=None, state="dead").count() == WorkItem.objects.count() == 1


def test_discard_by_filter_and_by_work_id(pack: Pack) -> None:
    one, two = dead(pack, "1", last_error="timeout"), dead(pack, "2", last_error="timeout")
    other = dead(pack, "3")
    alive = work_row(event_row(PAGES, source_id="4"))
    code, answer = run("dlq", "discard", "--error", "timeout", "--dry-run")
    assert (code, len(answer["discarded"])) == (0, 2)
    assert not WorkItem.objects.filter(discarded_at__isnull=False).exists()
    for forgotten in (("--yes",), ("--reason", "vendor gone")):
        code, answer = run("dlq", "discard", "--all", *forgotten)
        assert (code, answer["error"]["code"]) == (2, "usage")
    assert not WorkItem.objects.exclude(discarded_at=None).exists()
    assert not Job.objects.exists()
    code, answer = run("dlq", "discard", "--error", "timeout", "--reason", "vendor gone", "--yes")
    assert code == 0
    assert {row["work_id"] for row in answer["discarded"]} == {one.work_id, two.work_id}
    assert AuditEntry.objects.get(action="work.discard", reason="vendor gone").count == 2
    assert listed() == [other.work_id]
    code, answer = run("dlq", "discard", one.work_id, alive.work_id, "--reason", "x", "--yes")
    assert code == 1
    assert sorted(row["code"] for row in answer["refused"]) == ["already_discarded", "not_dead"]
    dry = run("dlq", "discard", one.work_id, alive.work_id, "--dry-run")[1]
    assert dry["refused"] == answer["refused"]


def test_discarded_dead_letters_are_restored_by_filter_by_name_and_all_together(pack: Pack) -> None:
    one, two = (dead(pack, str(n), last_error="timeout", discarded_at=now()) for n in (1, 2))
    three, is_open = dead(pack, "3", discarded_at=now()), dead(pack, "4", last_error="timeout")
    assert run("dlq", "restore", "--all")[1]["error"]["reason"] == "Give the reason for the audit log with --reason."
    dry = run("dlq", "restore", "--error", "timeout", "--dry-run")[1]
    assert WorkItem.objects.exclude(discarded_at=None).count() == 3
    code, answer = run("dlq", "restore", "--error", "timeout", "--reason", "by mistake")
    assert (code, answer["restored"]) == (0, [{"work_id": one.work_id}, {"work_id": two.work_id}])
    assert dry["restored"] == answer["restored"]
    entries = AuditEntry.objects.filter(action="work.restore", reason="by mistake").values_list("target", flat=True)
    assert sorted(entries) == sorted([one.work_id, two.work_id])
    code, answer = run("dlq", "restore", three.work_id, is_open.work_id, "--reason", "x")
    assert (code, [row["code"] for row in answer["refused"]]) == (1, ["not_discarded"])
    assert listed() == sorted(item.work_id for item in (one, two, three, is_open))
    run("dlq", "discard", "--all", "--reason", "x", "--yes")
    assert listed() == []
    assert "4 restored, 0 refused" in say("dlq", "restore", "--all", "--reason", "x")[1]
    assert len(listed()) == 4
    assert run("dlq", "replay", one.work_id)[0] == 0


def test_all_pages_of_discarded_dead_letters_are_restored(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.operations.dead_letters.RESTORED_AT_ONCE", 2)
    for number in range(5):
        dead(pack, str(number), discarded_at=now())
    assert len(run("dlq", "restore", "--all", "--reason", "x")[1]["restored"]) == 5
    assert len(listed()) == 5


def test_show_is_the_detail_of_the_item(pack: Pack) -> None:
    item = dead(pack, "1", last_error="no")
    assert run("dlq", "show", item.work_id)[1]["why"]["code"] == "dead"
    assert run("dlq", "show", "unknown")[0] == 1


def test_dead_letters_are_found_by_the_short_ids_of_the_list(pack: Pack) -> None:
    one, two = dead(pack, "1"), dead(pack, "2")
    shown = [line.split()[0] for line in say("dlq", "list")[1].splitlines()[1:]]
    assert all(len(text) == len("evt:") + 12 for text in shown)
    code, answer = run("dlq", "discard", *shown, "--reason", "x", "--yes")
    assert (code, sorted(row["work_id"] for row in answer["discarded"])) == (0, sorted([one.work_id, two.work_id]))
    assert run("dlq", "restore", shown[0], "--reason", "x")[1]["restored"] == [{"work_id": two.work_id}]
